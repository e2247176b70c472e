#include "data/packed_corpus.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/permutation.h"

namespace trainyard::data {
namespace {

/// Of so many windows, those that have a target.
std::vector<int64_t> windows_with_targets(const TokenArray& tokens, int64_t windows, int64_t length) {
  std::vector<int64_t> found;
  std::vector<int32_t> targets(static_cast<size_t>(length));
  for (int64_t window = 0; window < windows; ++window)
    if (tokens.copy_targets(window * length + 1, targets) > 0) found.push_back(window);
  return found;
}

}  // namespace

PackedCorpus::PackedCorpus(TokenArray tokens, const PackingOptions& options)
    : tokens_(std::move(tokens)),
      length_(options.sequence_length),
      seed_(options.seed),
      is_shuffled_(options.shuffle),
      windows_(length_ < 1 ? 0 : (tokens_.size() - 1) / length_) {
  if (length_ < 1) throw std::invalid_argument(fmt::format("PackedCorpus: sequence_length {}", length_));
  if (windows_ < 1)
    throw InputError(fmt::format(
        "{}: {} tokens, but one sequence takes {} (training.sequence_length + 1); shorten it or give more text",
        tokens_.name(), with_thousands(tokens_.size()), with_thousands(length_ + 1)));
  if (tokens_.counting() == Counting::AllIds) return;
  with_targets_ = windows_with_targets(tokens_, windows_, length_);
  windows_ = std::ssize(with_targets_);
  if (windows_ == 0)
    throw InputError(
        fmt::format("{}: the loss counts none of its {} tokens", tokens_.name(), with_thousands(tokens_.size())));
}

void PackedCorpus::fill_row(int64_t sequence, int64_t row, Batch& batch) const {
  const auto index = static_cast<uint64_t>(sequence % windows_);
  const Permutation permutation = order_of_epoch(windows_, seed_, sequence / windows_);
  const auto drawn = static_cast<int64_t>(is_shuffled_ ? permutation(index) : index);
  const int64_t window = with_targets_.empty() ? drawn : with_targets_[static_cast<size_t>(drawn)];
  const auto length = static_cast<size_t>(length_), begin = static_cast<size_t>(row) * length;
  tokens_.copy(window * length_, batch.input_ids.values<int32_t>().subspan(begin, length));
  batch.valid_tokens +=
      tokens_.copy_targets(window * length_ + 1, batch.targets.values<int32_t>().subspan(begin, length));
}

Batch unfilled_batch(int64_t rows, int64_t sequence_length) {
  const Shape shape{rows, sequence_length};
  return {.input_ids = Tensor::empty(shape, DType::Int32), .targets = Tensor::empty(shape, DType::Int32)};
}

}  // namespace trainyard::data
