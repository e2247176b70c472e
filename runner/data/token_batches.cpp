#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "data/loaders.h"
#include "data/pair_batches.h"
#include "data/stored_steps.h"
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

class TokenBatches final : public StoredSteps {
 public:
  TokenBatches(SafetensorsFile file, const TokenBatchOptions& options)
      : StoredSteps(std::move(file), options, "input_ids") {
    if (!file_.has(name("input_ids")))
      throw InputError(fmt::format("{}: neither input_ids nor train.input_ids", file_.path().string()));
    shape_ = file_.entry(name("input_ids")).shape;
    if (shape_.size() != dimensions() || count_of(shape_) == 0)
      throw InputError(fmt::format("{}: {} is {}, must be {}, none of them 0", file_.path().string(), name("input_ids"),
                                   to_string(shape_), form()));
    for (const char* const part : {"input_ids", "labels", "position_ids"}) check_tensor(name(part));
    tokens_ = shape_.back();
  }

  [[nodiscard]] int64_t sequence_length() const override { return tokens_; }

 private:
  [[nodiscard]] json layout() const override { return {{"tensor", name("input_ids")}, {"shape", shape_}}; }

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
    const Tensor numbers = stored(part);
    grid.values.reserve(static_cast<size_t>(numbers.count()));
    const auto take = [&](const auto values) {
      for (const int64_t value : values) {
        const auto at = static_cast<int64_t>(grid.values.size());
        if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
          grid.fail(at / tokens_, at % tokens_, value, "a token id");
        grid.values.push_back(static_cast<int32_t>(value));
      }
    };
    if (numbers.dtype() == DType::Int64)
      take(numbers.values<int64_t>());
    else
      take(numbers.values<int32_t>());
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
  [[nodiscard]] Batch rank_rows() const override {
    const Grid ids = read("input_ids"), positions = read("position_ids");
    const Grid labels = file_.has(name("labels")) ? read("labels") : ids;
    const auto [rank, world] = options_.place;
    const auto grid = [&] { return Tensor::empty({own_rows(), tokens_}, DType::Int32); };
    Batch batch{grid(), grid(), positions.values.empty() ? Tensor() : grid(), 0};
    for (int64_t i = 0; i < own_rows(); ++i) fill_row(ids, labels, positions, rank + i * world, i, batch);
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

  int64_t tokens_ = 0;
};

}  // namespace

std::unique_ptr<Loader> token_batches(const std::filesystem::path& file, const TokenBatchOptions& options) {
  const auto& [rank, world] = options.place;
  if (options.accumulation_steps < 1 || world < 1 || rank < 0 || rank >= world)
    throw std::invalid_argument(
        fmt::format("token_batches: accumulation_steps {}, rank {} of {}", options.accumulation_steps, rank, world));
  SafetensorsFile opened(file);
  if (holds_pairs(opened)) return pair_batches(std::move(opened), options);
  return std::make_unique<TokenBatches>(std::move(opened), options);
}

}  // namespace trainyard::data
