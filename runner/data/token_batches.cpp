#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "data/loader_state.h"
#include "data/loaders.h"
#include "data/pair_batches.h"
#include "tensor/safetensors.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

/// One step's [rows, tokens] integers of a tensor, with what messages call them.
struct Grid {
  std::string where;
  int64_t tokens = 0;
  std::vector<int32_t> values;
  [[nodiscard]] std::span<const int32_t> row(int64_t index) const {
    return std::span(values).subspan(static_cast<size_t>(index * tokens), static_cast<size_t>(tokens));
  }
  [[noreturn]] void fail(int64_t row, int64_t token, int64_t value, const std::string& wanted) const {
    throw InputError(fmt::format("{}: row {}, token {}: {} is not {}", where, row, token, value, wanted));
  }
};

class TokenBatches : public Loader {
 public:
  TokenBatches(const std::filesystem::path& file, const TokenBatchOptions& options) : file_(file), options_(options) {
    const bool has_run = file_.has("train.input_ids"), has_single = file_.has("input_ids");
    if (!has_run && !has_single)
      throw InputError(fmt::format("{}: neither input_ids nor train.input_ids", file.string()));
    is_run_ = has_run && (options.prefer == Prefer::TrainingBatches || !has_single);
    shape_ = file_.entry(name("input_ids")).shape;
    if (shape_.size() != (is_run_ ? 3U : 2U) || count_of(shape_) == 0)
      throw InputError(fmt::format("{}: {} is {}, must be {}, none of them 0", file.string(), name("input_ids"),
                                   to_string(shape_), is_run_ ? "[steps, rows, tokens]" : "[rows, tokens]"));
    for (const char* const part : {"input_ids", "labels", "position_ids"}) check_tensor(name(part));
    steps_ = is_run_ ? shape_.front() : 1;
    rows_ = shape_[shape_.size() - 2];
    tokens_ = shape_.back();
  }

  Batch next() override {
    if (is_run_ && step_ >= steps_)
      throw InputError(fmt::format("{}: {} has {} steps, and step {} was asked for; lower training.steps",
                                   file_.path().string(), name("input_ids"), steps_, step_ + 1));
    if (micro_ == 0 && (is_run_ || !batch_.input_ids.defined())) batch_ = rank_rows();
    const int64_t rows = batch_.input_ids.size(0), pieces = options_.accumulation_steps;
    const int64_t begin = rows * micro_ / pieces, end = rows * (micro_ + 1) / pieces;
    Batch batch = part(begin, end - begin);
    if (++micro_ == pieces) micro_ = 0, ++step_;
    return batch;
  }

  [[nodiscard]] json state() const override {
    if (micro_ != 0) throw std::logic_error("TokenBatches: state() in the middle of a step");
    json state = layout();
    state["step"] = step_;
    return state;
  }

  void load_state(const json& state) override {
    require_same(state, layout(), file_.path().string());
    step_ = count_in(state, "step");
    micro_ = 0;
  }

  [[nodiscard]] int64_t sequences_seen() const override { return step_ * rows_; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return steps_ * rows_; }
  [[nodiscard]] std::optional<int64_t> steps_available() const override {
    return is_run_ ? std::optional(steps_) : std::nullopt;
  }
  [[nodiscard]] int64_t sequences_per_step() const override { return rows_; }
  [[nodiscard]] int64_t sequence_length() const override { return tokens_; }

 private:
  [[nodiscard]] std::string name(const char* part) const { return is_run_ ? fmt::format("train.{}", part) : part; }
  [[nodiscard]] json layout() const { return {{"tensor", name("input_ids")}, {"shape", shape_}}; }

  void check_tensor(const std::string& tensor) const {
    if (!file_.has(tensor)) return;  // optional
    const auto& entry = file_.entry(tensor);
    const auto dtype = entry.dtype();
    if (dtype != DType::Int32 && dtype != DType::Int64)
      throw InputError(
          fmt::format("{}: {} is {}, must be I32 or I64", file_.path().string(), tensor, entry.stored_dtype));
    if (entry.shape != shape_)
      throw InputError(fmt::format("{}: {} is {}, but {} is {}", file_.path().string(), tensor, to_string(entry.shape),
                                   name("input_ids"), to_string(shape_)));
  }

  /// The current step's numbers of `part`; empty where the file has no such tensor.
  [[nodiscard]] Grid read(const char* part) const {
    Grid grid{fmt::format("{}: {}{}", file_.path().string(), name(part), is_run_ ? fmt::format("[{}]", step_) : ""),
              tokens_,
              {}};
    if (!file_.has(name(part))) return grid;
    const Tensor stored = is_run_ ? file_.read_rows(name(part), step_, 1) : file_.read(name(part));
    grid.values.reserve(static_cast<size_t>(stored.count()));
    const auto take = [&](const auto values) {
      for (const int64_t value : values) {
        const auto at = static_cast<int64_t>(grid.values.size());
        if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
          grid.fail(at / tokens_, at % tokens_, value, "a token id");
        grid.values.push_back(static_cast<int32_t>(value));
      }
    };
    if (stored.dtype() == DType::Int64)
      take(stored.values<int64_t>());
    else
      take(stored.values<int32_t>());
    return grid;
  }

  void check_id(const Grid& grid, int64_t row, int64_t token, int32_t id) const {
    const bool is_below = options_.vocab_size == 0 || id < options_.vocab_size;
    if (id < 0 || !is_below)
      grid.fail(row, token, id,
                options_.vocab_size == 0 ? "a token id"
                                         : fmt::format("in the model's vocabulary (0 to {})", options_.vocab_size - 1));
  }

  static void check_positions(const Grid& positions, int64_t row) {
    int32_t before = -1;
    for (int64_t token = 0; token < positions.tokens; ++token) {
      const int32_t position = positions.row(row)[static_cast<size_t>(token)];
      if (position != 0 && position != before + 1)
        positions.fail(row, token, position, fmt::format("{} or, where a document begins, 0", before + 1));
      before = position;
    }
  }

  /// What position `token` has to predict.
  [[nodiscard]] int32_t target(const Grid& labels, const Grid& positions, int64_t row, int64_t token) const {
    if (token + 1 == tokens_) return kIgnored;
    const auto next = static_cast<size_t>(token + 1);
    if (!positions.values.empty() && positions.row(row)[next] == 0) return kIgnored;
    const int32_t label = labels.row(row)[next];
    if (label != kIgnored) check_id(labels, row, token + 1, label);
    return label;
  }

  /// This rank's rows of the current step.
  [[nodiscard]] Batch rank_rows() const {
    const Grid ids = read("input_ids"), positions = read("position_ids");
    const Grid labels = file_.has(name("labels")) ? read("labels") : ids;
    const auto [rank, world] = options_.place;
    const int64_t rows = rank < rows_ ? (rows_ - 1 - rank) / world + 1 : 0;
    const auto grid = [&] { return Tensor::empty({rows, tokens_}, DType::Int32); };
    Batch batch{grid(), grid(), positions.values.empty() ? Tensor() : grid(), 0};
    for (int64_t i = 0; i < rows; ++i) fill_row(ids, labels, positions, rank + i * world, i, batch);
    return batch;
  }

  void fill_row(const Grid& ids, const Grid& labels, const Grid& positions, int64_t row, int64_t to,
                Batch& batch) const {
    const auto first = static_cast<size_t>(to * tokens_), length = static_cast<size_t>(tokens_);
    const auto input = batch.input_ids.values<int32_t>().subspan(first, length),
               targets = batch.targets.values<int32_t>().subspan(first, length);
    if (!positions.values.empty()) {
      check_positions(positions, row);
      std::ranges::copy(positions.row(row),
                        batch.position_ids.values<int32_t>().begin() + static_cast<ptrdiff_t>(first));
    }
    for (int64_t token = 0; token < tokens_; ++token) {
      const int32_t id = ids.row(row)[static_cast<size_t>(token)];
      check_id(ids, row, token, id);
      input[static_cast<size_t>(token)] = id;
      targets[static_cast<size_t>(token)] = target(labels, positions, row, token);
    }
  }

  [[nodiscard]] Batch part(int64_t begin, int64_t rows) const {
    Batch out{batch_.input_ids.rows(begin, rows), batch_.targets.rows(begin, rows),
              batch_.position_ids.defined() ? batch_.position_ids.rows(begin, rows) : Tensor(), 0};
    out.valid_tokens = count_valid(out.targets);
    for (int64_t row = begin; row < begin + rows; ++row)
      out.sequences.push_back(step_ * rows_ + options_.place.rank + row * options_.place.world);
    return out;
  }

  SafetensorsFile file_;
  TokenBatchOptions options_;
  bool is_run_ = false;
  Shape shape_;
  int64_t steps_ = 0, rows_ = 0, tokens_ = 0;
  int64_t step_ = 0, micro_ = 0;
  Batch batch_;  ///< this rank's rows of the current step
};

}  // namespace

std::unique_ptr<Loader> token_batches(const std::filesystem::path& file, const TokenBatchOptions& options) {
  const auto& [rank, world] = options.place;
  if (options.accumulation_steps < 1 || world < 1 || rank < 0 || rank >= world)
    throw std::invalid_argument(
        fmt::format("token_batches: accumulation_steps {}, rank {} of {}", options.accumulation_steps, rank, world));
  if (SafetensorsFile opened(file); holds_pairs(opened)) return pair_batches(std::move(opened), options);
  return std::make_unique<TokenBatches>(file, options);
}

}  // namespace trainyard::data
