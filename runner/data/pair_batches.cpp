#include "data/pair_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "data/stored_steps.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class PairBatches final : public StoredSteps {
 public:
  PairBatches(SafetensorsFile file, const TokenBatchOptions& options)
      : StoredSteps(std::move(file), options, "attention_mask") {
    shape_ = shape_of("input_ids"), target_ = shape_of("labels");
    const bool have_equal_rows = std::equal(shape_.begin(), shape_.end() - 1, target_.begin());
    if (shape_of("attention_mask") != shape_ || !have_equal_rows)
      throw InputError(fmt::format("{}: {} {}, {} {} and {} {} do not fit each other", file_.path().string(),
                                   name("input_ids"), to_string(shape_), name("attention_mask"),
                                   to_string(shape_of("attention_mask")), name("labels"), to_string(target_)));
  }

  [[nodiscard]] int64_t sequence_length() const override { return target_.back(); }
  [[nodiscard]] int64_t source_length() const override { return shape_.back(); }

 private:
  [[nodiscard]] json layout() const override {
    return {{"tensor", name("input_ids")}, {"shape", shape_}, {"labels", target_}};
  }

  [[nodiscard]] Shape shape_of(const char* part) const {
    const std::string tensor = name(part);
    if (!file_.has(tensor)) throw InputError(fmt::format("{}: no {}, which pairs need", file_.path().string(), tensor));
    const auto& entry = file_.entry(tensor);
    const bool is_whole = entry.dtype() == DType::Int32 || entry.dtype() == DType::Int64;
    if (!is_whole || entry.shape.size() != dimensions() || count_of(entry.shape) == 0)
      throw InputError(fmt::format("{}: {} is {} {}, must be I32 or I64 {}, none of them 0", file_.path().string(),
                                   tensor, entry.stored_dtype, to_string(entry.shape), form()));
    return entry.shape;
  }

  /// This rank's rows of `part` in the current step; each value is checked to be in [0, limit) or `allowed`.
  [[nodiscard]] Tensor rows_of(const char* part, int64_t tokens, int64_t limit, int64_t allowed) const {
    const auto [rank, world] = options_.place;
    const Tensor all = stored(part);
    Tensor taken = Tensor::empty({own_rows(), tokens}, DType::Int32);
    for (int64_t i = 0; i < taken.count(); ++i) {
      const int64_t row = rank + i / tokens * world;
      const auto at = static_cast<size_t>(row * tokens + i % tokens);
      const int64_t value = all.dtype() == DType::Int64 ? all.values<int64_t>()[at] : all.values<int32_t>()[at];
      if ((value < 0 || value >= limit) && value != allowed)
        throw InputError(fmt::format("{}: {}: row {}, token {}: {} is not from 0 to {}", file_.path().string(),
                                     name(part), row, i % tokens, value, limit - 1));
      taken.values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(value);
    }
    return taken;
  }

  [[nodiscard]] Tensor lengths_of(const Tensor& mask) const {
    Tensor lengths = Tensor::zeros({mask.size(0)}, DType::Int32);
    for (int64_t i = 0; i < mask.count(); ++i) {
      int32_t& length = lengths.values<int32_t>()[static_cast<size_t>(i / mask.size(1))];
      if (std::as_const(mask).values<int32_t>()[static_cast<size_t>(i)] == 0) continue;
      if (length != i % mask.size(1))
        throw InputError(fmt::format("{}: {}: a real token follows padding; padding must be at the end",
                                     file_.path().string(), name("attention_mask")));
      ++length;
    }
    return lengths;
  }

  [[nodiscard]] Batch rank_rows() const override {
    const int64_t ids = options_.vocab_size > 0 ? options_.vocab_size : int64_t{1} << 31;
    Batch batch{rows_of("input_ids", shape_.back(), ids, 0), rows_of("labels", target_.back(), ids, kIgnored)};
    batch.input_lengths = lengths_of(rows_of("attention_mask", shape_.back(), 2, 0));
    return batch;
  }

  Shape target_;
};

}  // namespace

bool holds_pairs(const SafetensorsFile& file) {
  return file.has("attention_mask") || file.has("train.attention_mask");
}

std::unique_ptr<Loader> pair_batches(SafetensorsFile file, const TokenBatchOptions& options) {
  return std::make_unique<PairBatches>(std::move(file), options);
}

}  // namespace trainyard::data
