#include "checkpoint/adapter.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";

[[noreturn]] void fail(const StoredAdapter& adapter, const std::string& what) {
  throw InputError(fmt::format("{}: {}", adapter.path.string(), what));
}

/// Throws for members that make something else of the adapters than B · A.
void require_plain(const StoredAdapter& adapter) {
  const json& config = adapter.config;
  if (config.value("peft_type", json("LORA")) != "LORA")
    fail(adapter, fmt::format("peft_type is {}; LORA is what is read", config["peft_type"].dump()));
  for (const char* const name : {"use_dora", "fan_in_fan_out", "lora_bias", "use_qalora"})
    if (const json value = config.value(name, json()); value == true)
      fail(adapter, fmt::format("{} is true, which is not read", name));
  if (const json bias = config.value("bias", json("none")); bias != "none")
    fail(adapter, fmt::format("bias is {}, which is not read; none is", bias.dump()));
  for (const char* const name : {"alpha_pattern", "rank_pattern", "modules_to_save", "trainable_token_indices"})
    if (const json value = config.value(name, json()); !value.is_null() && !value.empty())
      fail(adapter, fmt::format("{} is {}, which is not read", name, value.dump()));
}

/// The two matrices of one weight, by the names that they are stored under.
struct Pair {
  std::string a, b;
};

/// The keys are the names of the base's weights.
std::map<std::string, Pair> pairs_of(const StoredAdapter& adapter, const Weights& base) {
  std::map<std::string, Pair> pairs;
  for (const std::string& stored : adapter.tensors->names()) {
    std::string_view name = stored;
    if (name.starts_with(kPeftPrefix)) name.remove_prefix(std::string_view(kPeftPrefix).size());
    const bool is_a = name.ends_with(kA);
    if (!is_a && !name.ends_with(kB))
      fail(adapter,
           fmt::format("holds {}, which is no lora_A and no lora_B of a linear layer, and is not read", stored));
    name.remove_suffix(is_a ? kA.size() : kB.size());
    Pair& pair = pairs[std::string(name) + ".weight"];
    (is_a ? pair.a : pair.b) = stored;
  }
  if (pairs.empty()) fail(adapter, "holds no tensor");
  for (const auto& [weight, pair] : pairs) {
    if (pair.a.empty() || pair.b.empty())
      fail(adapter,
           fmt::format("holds {} without its lora_{}", pair.a.empty() ? pair.b : pair.a, pair.a.empty() ? 'A' : 'B'));
    if (!base.has(weight))
      fail(adapter, fmt::format("adapts {}, which the base has not; is it another model's?", weight));
    const Shape a = adapter.tensors->shape(pair.a), b = adapter.tensors->shape(pair.b), whole = base.shape(weight);
    if (a.size() != 2 || b.size() != 2 || whole.size() != 2 || a[0] != b[1] || b[0] != whole[0] || a[1] != whole[1])
      fail(adapter, fmt::format("{} is {} and its B {}, which do not fit the base's {}; is it another model's?", pair.a,
                                to_string(a), to_string(b), to_string(whole)));
  }
  return pairs;
}

class MergedWeights final : public Weights {
 public:
  MergedWeights(std::unique_ptr<Weights> base, StoredAdapter adapter)
      : base_(std::move(base)),
        adapter_(std::move(adapter)),
        scale_(scale_of(adapter_)),
        pairs_(pairs_of(adapter_, *base_)) {}

  bool has(const std::string& name) const override { return base_->has(name); }
  std::vector<std::string> names() const override { return base_->names(); }
  Shape shape(const std::string& name) const override { return base_->shape(name); }
  std::string stored_dtype(const std::string& name) const override { return base_->stored_dtype(name); }
  fs::path path_of(const std::string& name) const override { return base_->path_of(name); }
  bool may_lack_rows() const override { return base_->may_lack_rows(); }
  std::optional<std::string> find_damage(int part, int parts) const override {
    if (auto damage = adapter_.tensors->find_damage(part, parts)) return damage;
    return base_->find_damage(part, parts);
  }

  Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const override {
    Tensor rows = base_->read_rows(name, begin, count);
    const auto pair = pairs_.find(name);
    if (pair == pairs_.end() || count == 0) return rows;
    Tensor merged = Tensor::empty(rows.shape(), DType::Float32);
    copy(rows, merged);  // the base's may be a view of its file
    add_product(pair->second, begin, count, merged);
    return merged;
  }

 private:
  /// rows += scale · B[begin, begin + count) · A.
  void add_product(const Pair& pair, int64_t begin, int64_t count, Tensor& rows) const {
    const Shape a_shape = adapter_.tensors->shape(pair.a);
    const auto rank = static_cast<size_t>(a_shape[0]), columns = static_cast<size_t>(a_shape[1]);
    const Tensor a = adapter_.tensors->read_rows(pair.a, 0, a_shape[0]),
                 b = adapter_.tensors->read_rows(pair.b, begin, count);
    const auto of_a = a.values<float>(), of_b = b.values<float>();
    const auto sums = rows.values<float>();
    std::vector<float> product(columns);
    for (size_t row = 0; row < static_cast<size_t>(count); ++row) {
      std::fill(product.begin(), product.end(), 0.0F);
      for (size_t k = 0; k < rank; ++k) {
        const float factor = of_b[row * rank + k];
        for (size_t column = 0; column < columns; ++column) product[column] += factor * of_a[k * columns + column];
      }
      for (size_t column = 0; column < columns; ++column)
        sums[row * columns + column] += static_cast<float>(scale_) * product[column];
    }
  }

  std::unique_ptr<Weights> base_;
  StoredAdapter adapter_;
  double scale_;
  std::map<std::string, Pair> pairs_;
};

}  // namespace

double scale_of(const StoredAdapter& adapter) {
  require_plain(adapter);
  const json r = adapter.config.value("r", json()), alpha = adapter.config.value("lora_alpha", json());
  if (!r.is_number_integer() || r <= 0 || !alpha.is_number())
    fail(adapter, fmt::format("r is {} and lora_alpha {}; they must be a whole number above 0 and a number", r.dump(),
                              alpha.dump()));
  const bool by_root = adapter.config.value("use_rslora", json()) == true;
  const auto rank = r.get<double>();
  return alpha.get<double>() / (by_root ? std::sqrt(rank) : rank);
}

std::string stored_name(const StoredAdapter& adapter, const std::string& name) {
  const std::string with_prefix = kPeftPrefix + name;
  return adapter.tensors->has(with_prefix) ? with_prefix : name;
}

std::unique_ptr<Weights> merged(std::unique_ptr<Weights> base, StoredAdapter adapter) {
  return std::make_unique<MergedWeights>(std::move(base), std::move(adapter));
}

}  // namespace trainyard::checkpoint
