#include "data/split_rows.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "data/loader_around.h"

namespace trainyard::data {
namespace {

/// [rows, tokens] with `padding` behind each row, up to `width`.
Tensor padded_to(const Tensor& ids, int64_t width, int32_t padding) {
  const int64_t rows = ids.size(0), tokens = ids.size(1);
  Tensor wide = Tensor::empty({rows, width}, DType::Int32);
  const auto from = ids.values<int32_t>();
  const auto to = wide.values<int32_t>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t token = 0; token < width; ++token)
      to[static_cast<size_t>(row * width + token)] =
          token < tokens ? from[static_cast<size_t>(row * tokens + token)] : padding;
  return wide;
}

/// 0, 1, 2, … in each row, or the positions that are given, which padding goes on from.
Tensor positions_of(const Batch& batch, int64_t width) {
  const int64_t rows = batch.input_ids.size(0), tokens = batch.input_ids.size(1);
  const bool are_given = batch.position_ids.defined();
  Tensor positions = are_given ? padded_to(batch.position_ids, width, 0) : Tensor::empty({rows, width}, DType::Int32);
  const auto values = positions.values<int32_t>();
  const int64_t given = are_given ? tokens : 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t token = given; token < width; ++token) {
      const auto i = static_cast<size_t>(row * width + token);
      values[i] = token == 0 ? 0 : values[i - 1] + 1;
    }
  return positions;
}

/// The pieces of a rank of whole rows [rows, width].
Tensor pieces_of(const Tensor& whole, const RowParts& parts, int rank) {
  const int64_t rows = whole.size(0), width = whole.size(1), tokens = width / parts.all_pieces();
  Tensor part = Tensor::empty({parts.pieces() * rows, tokens}, DType::Int32);
  const auto from = whole.values<int32_t>();
  const auto to = part.values<int32_t>();
  for (int piece = 0; piece < parts.pieces(); ++piece)
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t begin = row * width + parts.place_of(rank, piece) * tokens;
      std::ranges::copy(from.subspan(static_cast<size_t>(begin), static_cast<size_t>(tokens)),
                        to.begin() + (piece * rows + row) * tokens);
    }
  return part;
}

class SplitRows final : public LoaderAround {
 public:
  SplitRows(std::unique_ptr<Loader> loader, RowParts parts, int rank)
      : LoaderAround(std::move(loader)), parts_(parts), rank_(rank) {}

  Batch next() override { return part_of(inner().next(), parts_, rank_); }
  void skip() override { inner().skip(); }

 private:
  const RowParts parts_;
  const int rank_;
};

}  // namespace

Batch part_of(const Batch& batch, const RowParts& parts, int rank) {
  if (batch.features.defined() || batch.input_lengths.defined() || batch.targets.shape() != batch.input_ids.shape())
    throw std::invalid_argument("part_of: only rows of a decoder's tokens are split");
  const int64_t width = parts.padded(batch.input_ids.size(1));
  Batch part{.input_ids = pieces_of(padded_to(batch.input_ids, width, 0), parts, rank),
             .targets = pieces_of(padded_to(batch.targets, width, kIgnored), parts, rank),
             .whole = {.tokens = width, .document_starts = {}, .own_document_starts = {}}};
  const Tensor positions = positions_of(batch, width);
  part.position_ids = pieces_of(positions, parts, rank);
  if (batch.position_ids.defined()) {
    const Tensor starts = document_starts(positions), own = pieces_of(starts, parts, rank);
    part.whole.document_starts = starts.reshape({starts.count()});
    part.whole.own_document_starts = own.reshape({own.count()});
  }
  part.valid_tokens = count_valid(part.targets);
  for (int piece = 0; piece < parts.pieces(); ++piece)
    part.sequences.insert(part.sequences.end(), batch.sequences.begin(), batch.sequences.end());
  return part;
}

std::unique_ptr<Loader> split_rows(std::unique_ptr<Loader> loader, RowParts parts, int rank) {
  return std::make_unique<SplitRows>(std::move(loader), parts, rank);
}

}  // namespace trainyard::data
