#include "train/gather.h"

#include <algorithm>
#include <array>

#include "assemble/exchange.h"
#include "ops/columns.h"
#include "tensor/chunk.h"

namespace trainyard::train {

Tensor gather_rows(comm::Communicator& sharders, const Tensor& local, const Shape& whole, const std::string& label) {
  if (sharders.world() == 1 || count_of(whole) == 0) return local;
  Shape padded = whole;
  padded[0] = chunk_of(whole[0], sharders.world(), 0).count;
  Tensor mine = local;
  if (local.shape() != padded) {
    mine = Tensor::zeros(padded, local.dtype(), local.device());
    Tensor filled = mine.rows(0, local.size(0));
    copy(local, filled);
  }
  padded[0] *= sharders.world();
  Tensor all = Tensor::empty(padded, local.dtype(), local.device());
  sharders.all_gather(mine, all, label).wait();
  return all.rows(0, whole[0]);
}

namespace {

/// Rows of parts that ranks exchange at once: 64 MiB from each, or one row. What a rank holds beside the whole.
int64_t rows_at_once(const Shape& part, DType dtype) {
  const auto row_bytes = static_cast<int64_t>(size_of(dtype)) * std::max<int64_t>(count_of(part) / part[0], 1);
  return std::max<int64_t>((int64_t{64} << 20) / row_bytes, 1);
}

/// A view of `rows` [rows, …] as [rows, elements of a row]: a bias has one element in a row.
Tensor as_matrix(const Tensor& rows) {
  return rows.reshape({rows.size(0), rows.count() / rows.size(0)});
}

}  // namespace

Tensor gather_whole(const shard::Mesh& mesh, const autograd::Parameter& parameter, const Tensor& local,
                    const std::string& label) {
  const Tensor part = gather_rows(mesh.of(shard::Dimension::Shard), local, parameter.shape(), label);
  comm::Communicator& ranks = mesh.of(shard::Dimension::Tensor);
  const auto dimension = static_cast<size_t>(parameter.part().dimension);
  const Shape& shape = parameter.whole_shape();
  // Parts may differ in size, so all send as much as the largest.
  const GatheredScalars parts(
      ranks, std::array{static_cast<double>(parameter.part().begin), static_cast<double>(parameter.shape()[dimension])},
      "parts");
  const bool is_replicated = parts.min(1) == static_cast<double>(shape[dimension]);
  if (is_replicated || count_of(shape) == 0) return part;
  Shape largest = shape;
  largest[dimension] = static_cast<int64_t>(parts.max(1));
  Tensor whole = Tensor::empty(shape, part.dtype(), part.device());
  const int64_t at_once = rows_at_once(largest, part.dtype());
  for (int64_t begin = 0; begin < largest[0]; begin += at_once) {
    Shape sent = largest, received = largest;
    sent[0] = std::min(at_once, largest[0] - begin);
    received[0] = sent[0] * ranks.world();
    const auto rows_in = [&](int64_t rows) { return std::clamp<int64_t>(rows - begin, 0, sent[0]); };
    Tensor own = Tensor::zeros(sent, part.dtype(), part.device());
    if (const int64_t rows = rows_in(part.size(0)); rows > 0) {
      const Tensor present = as_matrix(part.rows(begin, rows));
      Tensor filled = as_matrix(own.rows(0, rows));
      ops::copy_columns(present, 0, present.size(1), filled, 0);
    }
    Tensor all = Tensor::empty(received, part.dtype(), part.device());
    ranks.all_gather(own, all, label).wait();
    for (int rank = 0; rank < ranks.world(); ++rank) {
      const auto first = static_cast<int64_t>(parts.at(rank, 0)), count = static_cast<int64_t>(parts.at(rank, 1));
      const int64_t rows = rows_in(dimension == 0 ? count : shape[0]);
      if (rows == 0 || count == 0) continue;
      const int64_t columns = dimension == 0 ? count_of(shape) / shape[0] : count;
      Tensor place = as_matrix(whole.rows(dimension == 0 ? first + begin : begin, rows));
      ops::copy_columns(as_matrix(all.rows(rank * sent[0], rows)), 0, columns, place, dimension == 0 ? 0 : first);
    }
  }
  return whole;
}

}  // namespace trainyard::train
