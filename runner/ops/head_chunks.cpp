#include "ops/head_chunks.h"

#include <algorithm>
#include <array>

#include "ops/cost.h"
#include "ops/embedding.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

/// What one chunk's logits may take. Large enough that the sum of dw, read and written once a chunk, does not weigh
/// beside the products; a large vocabulary gets the least number of tokens all the same.
struct ChunkLimits {
  DType dtype;  ///< of the logits
  int64_t bytes, least_tokens, most_tokens;
};

ChunkLimits limits_for(const Tensor& h) {
  // Products of the CPU come as float32, and a sum of dw is 2 % of a chunk at vocabulary 8192, hidden 512.
  if (h.device().kind == DeviceKind::Cpu && !runs_elsewhere()) return {DType::Float32, int64_t{16} << 20, 128, 1024};
  // An element of a float32 dw moves 8 bytes a chunk beside 6 FLOP a token: where a device does 200 FLOP while it moves
  // a byte, 7 % of the products of 4096 tokens, 13 % of 2048. A vocabulary of 151,936 gets 3533.
  return {h.dtype(), int64_t{1} << 30, 256, 4096};
}

/// The tokens of one chunk: a range of h where none in between is ignored, else gathered.
struct Chunk {
  Tensor ids;     ///< [rows] int32, on h's device
  int64_t first;  ///< id
  bool is_contiguous;

  [[nodiscard]] Tensor rows_of(const Kernels& kernels, const Tensor& all) const {
    if (is_contiguous) return all.rows(first, ids.count());
    Tensor gathered = Tensor::empty({ids.count(), all.size(1)}, all.dtype(), all.device());
    kernels.embedding(ids, all, 0, gathered);
    return gathered;
  }
};

struct HeadChunks {
  const Kernels& kernels;
  const Tensor &h, &w;
  LossGradients* gradients;
  const ChunkSoftmax& softmax;
  DType logits_dtype;

  void add(const Chunk& chunk) const {
    const Tensor rows = chunk.rows_of(kernels, h);
    Tensor logits = Tensor::empty({rows.size(0), w.size(0)}, logits_dtype, h.device());
    kernels.matmul(rows, w, logits, {.b = Transpose::Yes});
    if (!gradients) return softmax(chunk.ids, logits, nullptr);
    Tensor dlogits = logits_dtype == h.dtype() ? logits : Tensor::empty(logits.shape(), h.dtype(), h.device());
    softmax(chunk.ids, logits, &dlogits);
    if (gradients->dw.defined())
      kernels.matmul(dlogits, rows, gradients->dw, {.a = Transpose::Yes, .accumulate = true});
    if (chunk.is_contiguous) {
      Tensor dh = gradients->dh.rows(chunk.first, rows.size(0));
      return kernels.matmul(dlogits, w, dh, {});
    }
    Tensor dh = empty_like(rows);
    kernels.matmul(dlogits, w, dh, {});
    // It adds to rows that for_head_chunks() has cleared.
    kernels.embedding_backward(dh, chunk.ids, 0, kNoPadding, gradients->dh);
  }
};

}  // namespace

void for_head_chunks(const Tensor& h, const Tensor& w, const Targets& targets, LossGradients* gradients,
                     const ChunkSoftmax& softmax) {
  const Tensor &valid = targets.valid(), ids = targets.valid_on(h.device());
  const Kernels& kernels = kernels_for("linear_cross_entropy", std::array{&h, &w});
  if (gradients && valid.count() < h.size(0)) kernels.set_zero(gradients->dh);
  const ChunkLimits limits = limits_for(h);
  const HeadChunks head{kernels, h, w, gradients, softmax, limits.dtype};
  const auto row_bytes = std::max<int64_t>(w.size(0), 1) * static_cast<int64_t>(size_of(limits.dtype));
  const int64_t tokens = std::clamp(limits.bytes / row_bytes, limits.least_tokens, limits.most_tokens);
  const int64_t chunks = (valid.count() + tokens - 1) / tokens;
  const std::span<const int32_t> values = valid.values<int32_t>();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {  // of equal size, give or take one
    const int64_t begin = valid.count() * chunk / chunks, rows = valid.count() * (chunk + 1) / chunks - begin;
    const int64_t first = values[static_cast<size_t>(begin)], last = values[static_cast<size_t>(begin + rows - 1)];
    head.add({.ids = ids.rows(begin, rows), .first = first, .is_contiguous = last - first + 1 == rows});
  }
}

}  // namespace trainyard::ops
