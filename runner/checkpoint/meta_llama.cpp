#include "checkpoint/meta_llama.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/meta_names.h"
#include "tensor/copy_2d.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxParamsBytes = size_t{1} << 20;
constexpr int64_t kMaxSize = int64_t{1} << 40;

/// params.json. What a release does not write has the value of Meta's ModelArgs.
struct Params {
  int64_t hidden, layers, heads, kv_heads, vocab;  ///< vocab: -1 where the tokenizer knew
  int64_t intermediate;
  double eps, theta;
  bool has_scaled_rope;
};

class ParamsFile {
 public:
  explicit ParamsFile(const fs::path& folder)
      : path_(folder / "params.json"), params_(json::parse(read_file(path_, kMaxParamsBytes), nullptr, false)) {
    if (!params_.is_object()) throw InputError(fmt::format("{}: is no JSON object", path_.string()));
    if (const auto model = params_.find("model"); model != params_.end() && model->is_object())
      params_ = json(*model);  // as some releases nest it
  }

  [[nodiscard]] int64_t size(const char* field) const {
    const json& value = at(field);
    if (!value.is_number_integer() || value <= 0 || value > kMaxSize) refuse(field, "a whole number above 0");
    return value;
  }
  [[nodiscard]] double number(const char* field) const {
    const json& value = at(field);
    if (!value.is_number() || value <= 0) refuse(field, "a number above 0");
    return value;
  }
  [[nodiscard]] bool truth(const char* field) const {
    const json& value = at(field);
    if (!value.is_boolean()) refuse(field, "true or false");
    return value;
  }
  [[nodiscard]] bool has(const char* field) const { return params_.contains(field) && !params_[field].is_null(); }
  [[nodiscard]] bool is(const char* field, int64_t number) const { return has(field) && params_[field] == number; }
  [[noreturn]] void refuse(const char* field, const char* wanted) const {
    throw InputError(fmt::format("{}: {} is {}; it must be {}", path_.string(), field, params_[field].dump(), wanted));
  }

 private:
  [[nodiscard]] const json& at(const char* field) const {
    if (!has(field)) throw InputError(fmt::format("{}: has no {}", path_.string(), field));
    return params_.at(field);
  }

  fs::path path_;
  json params_;
};

/// Meta's FeedForward: two thirds of four times the width, times the multiplier, up to a multiple.
int64_t intermediate_of(const ParamsFile& file, int64_t hidden) {
  int64_t rows = 2 * (4 * hidden) / 3;
  if (file.has("ffn_dim_multiplier"))
    rows = static_cast<int64_t>(file.number("ffn_dim_multiplier") * static_cast<double>(rows));
  const int64_t multiple = file.has("multiple_of") ? file.size("multiple_of") : 256;
  return (rows + multiple - 1) / multiple * multiple;
}

Params read_params(const fs::path& folder) {
  const ParamsFile file(folder);
  const int64_t hidden = file.size("dim"), heads = file.size("n_heads");
  if (hidden % heads != 0 || hidden / heads % 2 != 0) file.refuse("n_heads", "a divisor of dim, to an even quotient");
  for (const char* const field : {"moe_args", "quantization_args"})
    if (file.has(field)) file.refuse(field, "left out: dense models without quantised weights are read");
  return {.hidden = hidden,
          .layers = file.size("n_layers"),
          .heads = heads,
          .kv_heads = file.has("n_kv_heads") ? file.size("n_kv_heads") : heads,
          .vocab = file.is("vocab_size", -1) ? -1 : file.size("vocab_size"),
          .intermediate = intermediate_of(file, hidden),
          .eps = file.has("norm_eps") ? file.number("norm_eps") : 1e-5,
          .theta = file.has("rope_theta") ? file.number("rope_theta") : 10000.0,
          .has_scaled_rope = file.has("use_scaled_rope") && file.truth("use_scaled_rope")};
}

/// Whether it is Llama 3.2 and not 3.1, which params.json does not tell: no model of 3.1 is as narrow as those of 3.2.
bool is_llama_3_2(const Params& params) {
  return params.has_scaled_rope && params.hidden <= 3072;
}

json scaling_of(const Params& params) {
  return {{"rope_type", "llama3"},
          {"factor", is_llama_3_2(params) ? 32.0 : 8.0},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 8192}};
}

/// The longest row of the release, which params.json does not tell.
int64_t positions_of(const Params& params) {
  if (params.has_scaled_rope) return 131072;  // Llama 3.1 and later
  if (params.theta == 1e6) return 16384;      // Code Llama
  if (params.theta == 5e5) return 8192;       // Llama 3
  return params.eps == 1e-6 ? 2048 : 4096;    // Llama 1 and 2
}

std::string part_name(size_t index) {
  return fmt::format("consolidated.{:02}.pth", index);
}

bool is_part(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("consolidated.") && name.ends_with(".pth");
}

}  // namespace

bool is_meta_llama(const fs::path& folder) {
  if (!fs::exists(folder / "params.json")) return false;
  return std::ranges::any_of(fs::directory_iterator(folder), [](const auto& entry) { return is_part(entry.path()); });
}

std::string meta_config_json(const fs::path& folder) {
  const Params params = read_params(folder);
  const int64_t vocab =
      params.vocab > 0 ? params.vocab : MetaLlamaWeights(folder).shape("model.embed_tokens.weight").at(0);
  json config{{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"hidden_size", params.hidden},
              {"intermediate_size", params.intermediate},
              {"num_hidden_layers", params.layers},
              {"num_attention_heads", params.heads},
              {"num_key_value_heads", params.kv_heads},
              {"head_dim", params.hidden / params.heads},
              {"vocab_size", vocab},
              {"rms_norm_eps", params.eps},
              {"rope_theta", params.theta},
              {"max_position_embeddings", positions_of(params)},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", is_llama_3_2(params)}};
  if (params.has_scaled_rope) config["rope_scaling"] = scaling_of(params);
  return config.dump(2) + "\n";
}

MetaLlamaWeights::MetaLlamaWeights(const fs::path& folder) : folder_(folder) {
  const Params params = read_params(folder);
  hidden_ = params.hidden;
  head_dim_ = params.hidden / params.heads;
  kv_heads_ = params.kv_heads;
  const auto count = static_cast<size_t>(std::ranges::count_if(
      fs::directory_iterator(folder), [](const auto& entry) { return is_part(entry.path()); }));
  for (size_t part = 0; part < count; ++part) {
    const fs::path file = folder / part_name(part);
    if (!fs::exists(file))
      throw InputError(fmt::format("{}: holds {} files consolidated.*.pth, and {} is not among them", folder.string(),
                                   count, part_name(part)));
    parts_.emplace_back(std::vector{file});
  }
  for (const std::string& stored : parts_.at(0).names())
    if (stored != "rope.freqs") add(stored);  // computed from params.json
}

void MetaLlamaWeights::add(const std::string& stored) {
  for (const TorchWeights& part : parts_)
    if (!part.has(stored))
      throw InputError(fmt::format("{}: has no '{}', which {} has", part.path_of(part.names().at(0)).string(), stored,
                                   part_name(0)));
  const auto [name, is_rotated] = hugging_face_name_of(stored).value_or(NamePlace{stored});
  const Cut cut = cut_of(stored);
  Whole whole{stored, cut, shape_of(stored, cut), is_rotated ? head_dim_ : 0};
  if (stored.ends_with("attention.wk.weight") && whole.shape[0] != kv_heads_ * head_dim_)
    throw InputError(
        fmt::format("{}: the {} files hold {} rows of '{}', and {} heads of params.json have {}; a model that is cut for "
                    "more ranks than it has key and value heads is not read, take the form for {} ranks",
                    folder_.string(), parts_.size(), whole.shape[0], stored, kv_heads_, kv_heads_ * head_dim_,
                    kv_heads_));
  tensors_.emplace(name, std::move(whole));
}

MetaLlamaWeights::Cut MetaLlamaWeights::cut_of(const std::string& stored) const {
  if (parts_.size() == 1 || parts_[0].shape(stored).size() != 2) return Cut::None;
  // Llama 1 and 2 cut the embedding by columns, Llama 3 by rows.
  if (stored == "tok_embeddings.weight") return parts_[0].shape(stored)[1] == hidden_ ? Cut::Rows : Cut::Columns;
  const bool is_by_columns = stored.ends_with("attention.wo.weight") || stored.ends_with("feed_forward.w2.weight");
  return is_by_columns ? Cut::Columns : Cut::Rows;
}

Shape MetaLlamaWeights::shape_of(const std::string& stored, Cut cut) const {
  Shape whole = parts_[0].shape(stored);
  for (size_t part = 1; part < parts_.size(); ++part) {
    const Shape shape = parts_[part].shape(stored);
    if (shape != parts_[0].shape(stored))
      throw InputError(fmt::format("{}: '{}' is {}, and {} in {}", (folder_ / part_name(part)).string(), stored,
                                   to_string(shape), to_string(parts_[0].shape(stored)), part_name(0)));
    if (cut != Cut::None) whole[cut == Cut::Rows ? 0 : 1] += shape[cut == Cut::Rows ? 0 : 1];
  }
  return whole;
}

std::vector<std::string> MetaLlamaWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, whole] : tensors_) names.push_back(name);
  return names;
}

std::string MetaLlamaWeights::stored_dtype(const std::string& name) const {
  return parts_[0].stored_dtype(tensor(name).stored);
}

fs::path MetaLlamaWeights::path_of(const std::string& name) const {
  return parts_[0].path_of(tensor(name).stored);
}

const MetaLlamaWeights::Whole& MetaLlamaWeights::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw InputError(fmt::format("{}: no tensor '{}'", folder_.string(), name));
  return found->second;
}

Tensor MetaLlamaWeights::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  const Whole& whole = tensor(name);
  if (begin < 0 || count < 0 || whole.shape.empty() || count > whole.shape[0] - begin)
    throw InputError(fmt::format("{}: tensor '{}' of shape {} has no {} rows from {} on", folder_.string(), name,
                                 to_string(whole.shape), count, begin));
  if (whole.head_rows == 0 || count == 0) return stored_rows(whole, begin, count);
  return reordered_rows(Pairs::HalfApart, whole.head_rows, begin, count,
                        [&](int64_t first, int64_t rows) { return stored_rows(whole, first, rows); });
}

/// Rows in the files' order.
Tensor MetaLlamaWeights::stored_rows(const Whole& whole, int64_t begin, int64_t count) const {
  if (whole.cut == Cut::None) return parts_[0].read_rows(whole.stored, begin, count);
  Tensor rows = Tensor::empty({count, whole.shape[1]}, DType::Float32);
  if (whole.cut == Cut::Columns) {
    constexpr int64_t kElement = sizeof(float);
    int64_t column = 0;
    for (const TorchWeights& part : parts_) {
      const Tensor some = part.read_rows(whole.stored, begin, count);
      const int64_t width = some.size(1) * kElement;
      copy_2d(rows.raw() + column * kElement, rows.size(1) * kElement, some.raw(), width, width, count);
      column += some.size(1);
    }
    return rows;
  }
  const int64_t part_rows = parts_[0].shape(whole.stored)[0];
  for (int64_t row = begin; row < begin + count;) {
    const int64_t first = row % part_rows, taken = std::min(part_rows - first, begin + count - row);
    const Tensor some = parts_[static_cast<size_t>(row / part_rows)].read_rows(whole.stored, first, taken);
    std::copy_n(some.data<float>(), some.count(), rows.data<float>() + (row - begin) * whole.shape[1]);
    row += taken;
  }
  return rows;
}

}  // namespace trainyard::checkpoint
