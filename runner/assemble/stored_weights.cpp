#include "assemble/stored_weights.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::train {
namespace {

namespace fs = std::filesystem;
using checkpoint::Weights;

constexpr int64_t kPieceElements = int64_t{4} << 20;  // of a tensor that is compared

/// Calls `is_fine` with pieces of the rows of a tensor until it says no; returns whether it never did.
template <typename IsFine>
bool all_pieces(const Shape& shape, const IsFine& is_fine) {
  const int64_t rows = shape.empty() ? 1 : shape[0];
  const int64_t columns = std::max<int64_t>(1, trainyard::count_of(shape) / std::max<int64_t>(1, rows));
  const int64_t most = std::max<int64_t>(1, kPieceElements / columns);
  for (int64_t begin = 0; begin < rows; begin += most)
    if (!is_fine(begin, std::min(most, rows - begin))) return false;
  return true;
}

bool are_equal(const Weights& weights, const std::string& a, const std::string& b) {
  const Shape shape = weights.shape(a);
  return shape == weights.shape(b) && all_pieces(shape, [&](int64_t begin, int64_t count) {
           const Tensor left = weights.read_rows(a, begin, count), right = weights.read_rows(b, begin, count);
           return std::ranges::equal(left.values<float>(), right.values<float>());
         });
}

/// "model.norm" of "model.norm.weight".
std::string parent_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

/// What a model reads of weights, to hold against what is stored.
class Readers {
 public:
  explicit Readers(models::Model& model) : names_(models::stored_names(model.config())), config_(model.config()) {
    for (const autograd::Parameter* const parameter : model.parameters()) {
      parameters_.insert(parameter->name());
      modules_.insert(parent_of(parameter->name()));
    }
    if (!names_.head.empty()) modules_.insert(parent_of(names_.head));
    for (const nn::Module* const block : model.blocks()) {
      blocks_.push_back(block->name() + ".");
      ++counts_[block->name().substr(0, block->name().rfind('.') + 1)];
    }
  }

  [[nodiscard]] bool reads(const std::string& name) const { return parameters_.contains(name); }
  [[nodiscard]] bool ignores(const std::string& name) const {
    const auto matches = [&](const std::string& glob) { return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0; };
    return matches("*rotary_emb.inv_freq") || std::ranges::any_of(names_.ignored, matches);
  }
  [[nodiscard]] bool is_copy(const std::string& name) const {
    return (config_.tied_head && name == names_.head) || std::ranges::find(names_.copies, name) != names_.copies.end();
  }
  /// Whether it stands in a block, or beside a parameter.
  [[nodiscard]] bool is_within(const std::string& name) const {
    const auto holds = [&](const std::string& block) { return name.starts_with(block); };
    return modules_.contains(parent_of(name)) || std::ranges::any_of(blocks_, holds);
  }
  /// The last block of the stack in which `name` stands behind that; "" where it does not.
  [[nodiscard]] std::string last_before(const std::string& name) const {
    for (const auto& [stack, count] : counts_) {
      if (!name.starts_with(stack)) continue;
      const auto number = parse_int(name.substr(stack.size(), name.find('.', stack.size()) - stack.size()));
      if (number && *number >= count) return fmt::format("{}{}", stack, count - 1);
    }
    return "";
  }
  [[nodiscard]] const std::string& embedding() const { return names_.embedding; }
  [[nodiscard]] const std::string& family() const { return config_.family; }

 private:
  const models::StoredNames& names_;
  const models::ModelConfig& config_;
  std::set<std::string> parameters_, modules_;
  std::vector<std::string> blocks_;
  std::map<std::string, int64_t> counts_;  ///< of a stack's blocks, by what its names begin with: "model.layers."
};

/// "lora_A", "lora_B", "lora_magnitude_vector" and the like, wherever they stand.
bool is_lora(const std::string& name) {
  return name.starts_with("lora") || name.find(".lora") != std::string::npos;
}

/// Throws for a tensor that nothing reads and that transformers would use, or that the weights need.
void require_needless(const Readers& model, const Weights& weights, const std::string& name) {
  const std::string file = weights.path_of(name).string();
  if (const std::string last = model.last_before(name); !last.empty())
    throw InputError(
        fmt::format("{}: holds {}, but the last of these that config.json makes is {}", file, name, last));
  if (is_lora(name))
    throw InputError(fmt::format("{}: {} is of an adapter (LoRA), which is not read; merge it into the weights first, as "
                                 "peft's merge_and_unload does, or take it out",
                                 file, name));
  if (model.is_within(name) && checkpoint::is_scale(name.substr(parent_of(name).size())))
    throw InputError(fmt::format("{}: {} scales quantised weights, which are not read so; convert the weights to "
                                 "bfloat16 first",
                                 file, name));
}

}  // namespace

std::vector<checkpoint::Wanted> wanted_by(const models::ModelConfig& config) {
  std::vector<checkpoint::Wanted> wanted;
  const auto model = models::build(config);
  for (const autograd::Parameter* const parameter : model->parameters())
    wanted.push_back({parameter->name(), parameter->whole_shape()});
  return wanted;
}

std::unique_ptr<Weights> find_weights(const fs::path& path, const fs::path& name_map,
                                      const models::ModelConfig& config) {
  auto weights = checkpoint::find_weights(path);
  if (!weights || name_map.empty()) return weights;
  models::ModelConfig with_head = config;  // a map may name the head, too
  with_head.tied_head = false;
  return checkpoint::mapped(std::move(weights), checkpoint::NameMap(name_map), wanted_by(with_head));
}

std::unique_ptr<Weights> open_weights(const fs::path& path, const fs::path& name_map,
                                      const models::ModelConfig& config) {
  if (auto weights = find_weights(path, name_map, config)) return weights;
  return checkpoint::open_weights(path);  // which says what was looked for
}

bool depends_on_weights(const models::ModelConfig& config) {
  const models::StoredNames& names = models::stored_names(config);
  return !names.head.empty() && (config.tied_head || names.may_lack_head);
}

models::ModelConfig as_stored(models::ModelConfig config, const Weights& weights) {
  if (!depends_on_weights(config)) return config;
  const models::StoredNames& names = models::stored_names(config);
  if (!weights.has(names.head)) {
    config.tied_head = config.tied_head || names.may_lack_head;
  } else if (config.tied_head && weights.has(names.embedding)) {
    config.tied_head = are_equal(weights, names.head, names.embedding);
    if (!config.tied_head && !names.may_lack_head)
      spdlog::warn("{}: {} differs from {} and is used, though config.json says tie_word_embeddings",
                   weights.path_of(names.head).string(), names.head, names.embedding);
  }
  return config;
}

std::string as_stored(const std::string& config_json, const Weights& weights) {
  try {
    const models::ModelConfig written = models::parse_config(config_json, "config.json");
    const models::ModelConfig stored = as_stored(written, weights);
    if (stored.tied_head == written.tied_head) return config_json;
    return models::to_hugging_face(stored, config_json);
  } catch (const InputError&) {  // of a model that is none here: its weights can be converted all the same
    return config_json;
  }
}

std::vector<std::string> unread_by(models::Model& model, const Weights& weights) {
  const Readers readers(model);
  std::vector<std::string> unread;
  for (const std::string& name : weights.names()) {
    if (readers.reads(name) || readers.ignores(name)) continue;
    if (readers.is_copy(name) && weights.has(readers.embedding())) {
      if (are_equal(weights, name, readers.embedding())) continue;
      throw InputError(fmt::format("{}: {} differs from {}; a {} model, as config.json makes it, has one for both",
                                   weights.path_of(name).string(), name, readers.embedding(), readers.family()));
    }
    require_needless(readers, weights, name);
    unread.push_back(name);
  }
  return unread;
}

}  // namespace trainyard::train
