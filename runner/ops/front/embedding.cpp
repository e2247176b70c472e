#include "ops/embedding.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_ids(std::string_view op, const Tensor& ids, const Tensor& table, const TablePart& part) {
  require_indices(op, "ids", ids, part.whole > 0 ? part.whole : table.size(0));
}

}  // namespace

void embedding(const Tensor& ids, const Tensor& table, Tensor& out, const TablePart& part) {
  const metrics::TraceSpan span("embedding", "op");
  require_rank("embedding", "ids", ids, 1);
  require_rank("embedding", "table", table, 2);
  require("embedding", "ids", ids, ids.shape(), DType::Int32);
  require_floating("embedding", "table", table);
  require("embedding", "out", out, {ids.size(0), table.size(1)}, table.dtype());
  require_ids("embedding", ids, table, part);
  tell_cost({&out, &out});
  kernel("embedding", &Kernels::embedding, {&ids, &table, &out})(ids, table, part.first, out);
}

void embedding_backward(const Tensor& dout, const Tensor& ids, Tensor& dtable, const TablePart& part) {
  const metrics::TraceSpan span("embedding_backward", "op");
  require_rank("embedding_backward", "ids", ids, 1);
  require_rank("embedding_backward", "dtable", dtable, 2);
  require("embedding_backward", "ids", ids, ids.shape(), DType::Int32);
  require_floating("embedding_backward", "dout", dout);
  require_floating("embedding_backward", "dtable", dtable);
  require("embedding_backward", "dout", dout, {ids.size(0), dtable.size(1)}, dout.dtype());
  require_ids("embedding_backward", ids, dtable, part);
  tell_cost({&dout, &dout, &dout});
  kernel("embedding_backward", &Kernels::embedding_backward, {&dout, &ids, &dtable})(dout, ids, part.first, dtable);
}

}  // namespace trainyard::ops
