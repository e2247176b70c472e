#include "shard/layout.h"

#include <algorithm>

#include "ops/cast.h"
#include "ops/cost.h"
#include "ops/scale.h"

namespace trainyard::shard {
namespace {

/// `count` elements from `begin` on of a one-dimensional tensor.
Tensor slice(const Tensor& flat, int64_t begin, int64_t count) {
  return flat.rows(begin, count);
}

int64_t row_elements_of(const autograd::Parameter& parameter, DType dtype) {
  const int64_t rows = parameter.shape()[0], values = rows == 0 ? 0 : parameter.count() / rows;
  return dtype == DType::UInt8 ? ops::nf4_row_bytes(values) : values;
}

}  // namespace

Layout::Layout(std::span<autograd::Parameter* const> parameters, int world_size, int rank, DType dtype)
    : world(world_size) {
  for (autograd::Parameter* const parameter : parameters) {
    const int64_t rows = parameter->shape()[0];
    const int64_t row_elements = row_elements_of(*parameter, dtype);
    const int64_t chunk_rows = chunk_of(rows, world, 0).count;
    pieces.push_back(
        {parameter, rows, row_elements, chunk_rows, chunk_of(rows, world, rank), shard_elements, unsharded_elements});
    shard_elements += chunk_rows * row_elements;
    unsharded_elements += rows * row_elements;
  }
}

bool coalesces(const Layout& layout, Device device) {
  return device.kind != DeviceKind::Cpu && layout.world > 1 &&
         std::ranges::all_of(layout.pieces, [&](const Piece& piece) { return piece.rows % layout.world == 0; });
}

std::vector<Tensor> parts_of(const Layout& layout, const Tensor& shard) {
  std::vector<Tensor> parts;
  for (const Piece& piece : layout.pieces)
    parts.push_back(slice(shard, piece.shard_offset, piece.chunk_rows * piece.row_elements));
  return parts;
}

std::vector<Tensor> unsharded_of(const Layout& layout, const Tensor& whole) {
  std::vector<Tensor> wholes;
  for (const Piece& piece : layout.pieces)
    wholes.push_back(slice(whole, piece.whole_offset, piece.rows * piece.row_elements));
  return wholes;
}

void copy_out(const Layout& layout, const Tensor& gathered, Tensor& whole) {
  if (dry_run()) return ops::tell_cost({&gathered, &whole});  // its pieces are a thousand times the ranks
  for (int rank = 0; rank < layout.world; ++rank) {
    for (const Piece& piece : layout.pieces) {
      const Rows rows = chunk_of(piece.rows, layout.world, rank);
      const int64_t count = rows.count * piece.row_elements;
      Tensor to = slice(whole, piece.whole_offset + rows.begin * piece.row_elements, count);
      ops::cast(slice(gathered, rank * layout.shard_elements + piece.shard_offset, count), to);
    }
  }
}

void copy_shard_in(const Layout& layout, int rank, const Tensor& whole, Tensor& shard) {
  for (const Piece& piece : layout.pieces) {
    const Rows rows = chunk_of(piece.rows, layout.world, rank);
    const int64_t count = rows.count * piece.row_elements, padded = piece.chunk_rows * piece.row_elements;
    Tensor to = slice(shard, piece.shard_offset, count);
    Tensor padding = slice(shard, piece.shard_offset + count, padded - count);
    ops::cast(slice(whole, piece.whole_offset + rows.begin * piece.row_elements, count), to);
    ops::set_zero(padding);
  }
}

void copy_in(const Layout& layout, const Tensor& whole, Tensor& shards) {
  if (dry_run()) return ops::tell_cost({&whole, &shards});
  for (int rank = 0; rank < layout.world; ++rank) {
    Tensor shard = slice(shards, rank * layout.shard_elements, layout.shard_elements);
    copy_shard_in(layout, rank, whole, shard);
  }
}

}  // namespace trainyard::shard
