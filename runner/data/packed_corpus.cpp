#include "data/packed_corpus.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/permutation.h"

namespace trainyard::data {

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
}

void PackedCorpus::fill_row(int64_t sequence, int64_t row, Batch& batch) const {
  const auto index = static_cast<uint64_t>(sequence % windows_);
  const Permutation permutation = order_of_epoch(windows_, seed_, sequence / windows_);
  const auto window = static_cast<int64_t>(is_shuffled_ ? permutation(index) : index);
  const auto length = static_cast<size_t>(length_), begin = static_cast<size_t>(row) * length;
  tokens_.copy(window * length_, batch.input_ids.values<int32_t>().subspan(begin, length));
  tokens_.copy(window * length_ + 1, batch.targets.values<int32_t>().subspan(begin, length));
}

Batch unfilled_batch(int64_t rows, int64_t sequence_length) {
  const Shape shape{rows, sequence_length};
  return {.input_ids = Tensor::empty(shape, DType::Int32),
          .targets = Tensor::empty(shape, DType::Int32),
          .valid_tokens = count_of(shape)};
}

}  // namespace trainyard::data
