#include "ops/embedding.h"

#include <fmt/format.h>

#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

int64_t rows_of_whole(const Tensor& table, const TablePart& part) {
  return part.whole > 0 ? part.whole : table.size(0);
}

void require_padding_idx(std::optional<int64_t> padding_idx, int64_t rows) {
  if (padding_idx && (*padding_idx < 0 || *padding_idx >= rows))
    throw std::invalid_argument(
        fmt::format("embedding_backward: padding_idx is {}, outside 0 to {}", *padding_idx, rows - 1));
}

}  // namespace

void embedding(const Tensor& ids, const Tensor& table, Tensor& out, const TablePart& part) {
  const metrics::TraceSpan span("embedding", "op");
  require_rank("embedding", "ids", ids, 1);
  require_rank("embedding", "table", table, 2);
  require("embedding", "ids", ids, ids.shape(), DType::Int32);
  require_floating("embedding", "table", table);
  require("embedding", "out", out, {ids.size(0), table.size(1)}, table.dtype());
  require_indices("embedding", "ids", ids, rows_of_whole(table, part));
  tell_cost({&out, &out});
  kernel("embedding", &Kernels::embedding, {&ids, &table, &out})(ids, table, part.first, out);
}

void embedding_backward(const Tensor& dout, const Tensor& ids, Tensor& dtable, const TablePart& part,
                        std::optional<int64_t> padding_idx) {
  const metrics::TraceSpan span("embedding_backward", "op");
  require_rank("embedding_backward", "ids", ids, 1);
  require_rank("embedding_backward", "dtable", dtable, 2);
  require("embedding_backward", "ids", ids, ids.shape(), DType::Int32);
  require_floating("embedding_backward", "dout", dout);
  require_floating("embedding_backward", "dtable", dtable);
  require("embedding_backward", "dout", dout, {ids.size(0), dtable.size(1)}, dout.dtype());
  require_indices("embedding_backward", "ids", ids, rows_of_whole(dtable, part));
  require_padding_idx(padding_idx, rows_of_whole(dtable, part));
  tell_cost({&dout, &dout, &dout});
  kernel("embedding_backward", &Kernels::embedding_backward, {&dout, &ids, &dtable})(
      dout, ids, part.first, padding_idx.value_or(kNoPadding), dtable);
}

}  // namespace trainyard::ops
