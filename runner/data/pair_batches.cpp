#include "data/pair_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "data/loader_state.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class PairBatches : public Loader {
 public:
  PairBatches(SafetensorsFile file, const TokenBatchOptions& options) : file_(std::move(file)), options_(options) {
    is_run_ = file_.has("train.attention_mask") &&
              (options.prefer == Prefer::TrainingBatches || !file_.has("attention_mask"));
    source_ = shape_of("input_ids"), target_ = shape_of("labels");
    if (shape_of("attention_mask") != source_ || rows_of(target_) != rows_of(source_) || steps_of(target_) != steps())
      throw InputError(fmt::format("{}: {} {}, {} {} and {} {} do not fit each other", file_.path().string(),
                                   name("input_ids"), to_string(source_), name("attention_mask"),
                                   to_string(shape_of("attention_mask")), name("labels"), to_string(target_)));
  }

  Batch next() override {
    if (is_run_ && step_ >= steps())
      throw InputError(fmt::format("{}: {} has {} steps, and step {} was asked for; lower training.steps",
                                   file_.path().string(), name("input_ids"), steps(), step_ + 1));
    if (micro_ == 0) batch_ = rank_rows();
    const int64_t rows = batch_.input_ids.size(0), pieces = options_.accumulation_steps;
    const int64_t begin = rows * micro_ / pieces, end = rows * (micro_ + 1) / pieces;
    Batch batch{batch_.input_ids.rows(begin, end - begin), batch_.targets.rows(begin, end - begin)};
    batch.input_lengths = batch_.input_lengths.rows(begin, end - begin);
    batch.sequences.assign(batch_.sequences.begin() + begin, batch_.sequences.begin() + end);
    batch.valid_tokens = count_valid(batch.targets);
    if (++micro_ == pieces) micro_ = 0, ++step_;
    return batch;
  }

  [[nodiscard]] json state() const override {
    if (micro_ != 0) throw std::logic_error("PairBatches: state() in the middle of a step");
    json state = layout();
    state["step"] = step_;
    return state;
  }
  void load_state(const json& state) override {
    require_same(state, layout(), file_.path().string());
    step_ = count_in(state, "step");
    micro_ = 0;
  }

  [[nodiscard]] int64_t sequences_seen() const override { return step_ * rows_of(source_); }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return steps() * rows_of(source_); }
  [[nodiscard]] std::optional<int64_t> steps_available() const override {
    return is_run_ ? std::optional(steps()) : std::nullopt;
  }
  [[nodiscard]] int64_t sequences_per_step() const override { return rows_of(source_); }
  [[nodiscard]] int64_t sequence_length() const override { return target_.back(); }
  [[nodiscard]] int64_t source_length() const override { return source_.back(); }

 private:
  [[nodiscard]] std::string name(const char* part) const { return is_run_ ? fmt::format("train.{}", part) : part; }
  [[nodiscard]] json layout() const { return {{"tensor", name("input_ids")}, {"shape", source_}, {"labels", target_}}; }
  [[nodiscard]] static int64_t rows_of(const Shape& shape) { return shape[shape.size() - 2]; }
  [[nodiscard]] static int64_t steps_of(const Shape& shape) { return shape.size() == 3 ? shape.front() : 1; }
  [[nodiscard]] int64_t steps() const { return steps_of(source_); }

  [[nodiscard]] Shape shape_of(const char* part) const {
    const std::string tensor = name(part);
    if (!file_.has(tensor)) throw InputError(fmt::format("{}: no {}, which pairs need", file_.path().string(), tensor));
    const auto& entry = file_.entry(tensor);
    const bool is_whole = entry.dtype() == DType::Int32 || entry.dtype() == DType::Int64;
    if (!is_whole || entry.shape.size() != (is_run_ ? 3U : 2U) || count_of(entry.shape) == 0)
      throw InputError(fmt::format("{}: {} is {} {}, must be I32 or I64 {}, none of them 0", file_.path().string(),
                                   tensor, entry.stored_dtype, to_string(entry.shape),
                                   is_run_ ? "[steps, rows, tokens]" : "[rows, tokens]"));
    return entry.shape;
  }

  /// This rank's rows of `part` in the current step; each value is checked to be in [0, limit) or `allowed`.
  [[nodiscard]] Tensor rows(const char* part, int64_t tokens, int64_t limit, int64_t allowed) const {
    const auto [rank, world] = options_.place;
    const Tensor stored = is_run_ ? file_.read_rows(name(part), step_, 1) : file_.read(name(part));
    const int64_t all = rows_of(source_), mine = rank < all ? (all - 1 - rank) / world + 1 : 0;
    Tensor taken = Tensor::empty({mine, tokens}, DType::Int32);
    for (int64_t i = 0; i < taken.count(); ++i) {
      const int64_t row = rank + i / tokens * world;
      const auto at = static_cast<size_t>(row * tokens + i % tokens);
      const int64_t value =
          stored.dtype() == DType::Int64 ? stored.values<int64_t>()[at] : stored.values<int32_t>()[at];
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

  [[nodiscard]] Batch rank_rows() const {
    const int64_t ids = options_.vocab_size > 0 ? options_.vocab_size : int64_t{1} << 31;
    Batch batch{rows("input_ids", source_.back(), ids, 0), rows("labels", target_.back(), ids, kIgnored)};
    batch.input_lengths = lengths_of(rows("attention_mask", source_.back(), 2, 0));
    for (int64_t i = 0; i < batch.input_ids.size(0); ++i)
      batch.sequences.push_back(step_ * rows_of(source_) + options_.place.rank + i * options_.place.world);
    return batch;
  }

  SafetensorsFile file_;
  TokenBatchOptions options_;
  bool is_run_ = false;
  Shape source_, target_;
  int64_t step_ = 0, micro_ = 0;
  Batch batch_;  ///< this rank's rows of the current step
};

}  // namespace

bool holds_pairs(const SafetensorsFile& file) {
  return file.has("attention_mask") || file.has("train.attention_mask");
}

std::unique_ptr<Loader> pair_batches(SafetensorsFile file, const TokenBatchOptions& options) {
  return std::make_unique<PairBatches>(std::move(file), options);
}

}  // namespace trainyard::data
