#include "data/stored_steps.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "data/loader_state.h"

namespace trainyard::data {
namespace {

bool has_run(const SafetensorsFile& file, Prefer prefer, const std::string& part) {
  return file.has("train." + part) && (prefer == Prefer::TrainingBatches || !file.has(part));
}

Tensor rows_of(const Tensor& tensor, int64_t begin, int64_t rows) {
  return tensor.defined() ? tensor.rows(begin, rows) : Tensor();
}

}  // namespace

StoredSteps::StoredSteps(SafetensorsFile file, const TokenBatchOptions& options, const char* part)
    : file_(std::move(file)), options_(options), is_run_(has_run(file_, options.prefer, part)) {}

Batch StoredSteps::next() {
  if (is_run_ && step_ >= steps())
    throw InputError(fmt::format("{}: {} has {} steps, and step {} was asked for; lower training.steps",
                                 file_.path().string(), name("input_ids"), steps(), step_ + 1));
  if (micro_ == 0 && (is_run_ || !batch_.input_ids.defined())) batch_ = rank_rows();
  const int64_t pieces = options_.accumulation_steps;
  const int64_t begin = own_rows() * micro_ / pieces, end = own_rows() * (micro_ + 1) / pieces;
  Batch batch = piece(begin, end - begin);
  if (++micro_ == pieces) micro_ = 0, ++step_;
  return batch;
}

nlohmann::json StoredSteps::state() const {
  if (micro_ != 0) throw std::logic_error("StoredSteps: state() in the middle of a step");
  nlohmann::json state = layout();
  state["step"] = step_;
  return state;
}

void StoredSteps::load_state(const nlohmann::json& state) {
  require_same(state, layout(), file_.path().string());
  step_ = count_in(state, "step");
  micro_ = 0;
}

std::string StoredSteps::name(const char* part) const {
  return is_run_ ? fmt::format("train.{}", part) : part;
}

Tensor StoredSteps::stored(const char* part) const {
  return is_run_ ? file_.read_rows(name(part), step_, 1) : file_.read(name(part));
}

int64_t StoredSteps::own_rows() const {
  const auto [rank, world] = options_.place;
  return rank < rows() ? (rows() - 1 - rank) / world + 1 : 0;
}

Batch StoredSteps::piece(int64_t begin, int64_t rows) const {
  Batch batch{rows_of(batch_.input_ids, begin, rows), rows_of(batch_.targets, begin, rows),
              rows_of(batch_.position_ids, begin, rows)};
  batch.input_lengths = rows_of(batch_.input_lengths, begin, rows);
  batch.valid_tokens = count_valid(batch.targets);
  for (int64_t row = begin; row < begin + rows; ++row)
    batch.sequences.push_back(step_ * this->rows() + options_.place.rank + row * options_.place.world);
  return batch;
}

}  // namespace trainyard::data
