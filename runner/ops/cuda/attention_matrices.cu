#include "ops/attention_mask.h"
#include "ops/cuda/attention_cudnn.h"
#include "ops/cuda/map.cuh"
#include "ops/elements.h"

// What cuDNN's attention takes as tensors and ours by a formula. Its fused kernels read these matrices; they are small
// beside the products that they are added to.
namespace trainyard::ops::cuda {
namespace {

/// Any score less this is as good as −infinity, and finite in every type, so that no kernel meets ∞ − ∞.
constexpr float kHidden = -32768;

/// A block a query of a head.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    bias_kernel(AttentionShape s, int64_t first_head, const float* bias, T* to) {
  const int64_t query = blockIdx.x % s.q_tokens, head = first_head + blockIdx.x / s.q_tokens;
  for (int64_t key = threadIdx.x; key < s.kv_tokens; key += kThreads)
    to[blockIdx.x * s.kv_tokens + key] = from_float<T>(*bias_at(bias, s, head, query, key));
}

/// A block a query of a row; `starts` begins with the first, and counts from `offset`.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    document_kernel(AttentionShape s, const int32_t* starts, int64_t offset, T* to) {
  const int64_t start = starts[blockIdx.x] - offset;
  for (int64_t key = threadIdx.x; key < s.kv_tokens; key += kThreads)
    to[blockIdx.x * s.kv_tokens + key] = from_float<T>(key < start ? kHidden : 0.0F);
}

/// Elements of a diagonal that are loaded before the first of them is added.
constexpr int kAtOnce = 8;

/// A thread an element of dbias, whose diagonal it goes down.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    bias_gradient_kernel(AttentionShape s, int64_t heads, bool is_added, const T* from, float* dbias) {
  const int64_t span = s.q_tokens + s.kv_tokens - 1;
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < heads * span; i += stride.step) {
    const int64_t head = i / span, key_of_query_0 = i % span - (s.q_tokens - 1);
    const int64_t first = std::max<int64_t>(-key_of_query_0, 0);
    const int64_t count = std::min(s.q_tokens, s.kv_tokens - key_of_query_0) - first, step = s.kv_tokens + 1;
    const T* const diagonal = from + (head * s.q_tokens + first) * s.kv_tokens + first + key_of_query_0;
    float sum = is_added ? dbias[i] : 0.0F;
    int64_t added = 0;
    for (; added + kAtOnce <= count; added += kAtOnce) {
      T loaded[kAtOnce];
      for (int j = 0; j < kAtOnce; ++j) loaded[j] = diagonal[(added + j) * step];
      for (int j = 0; j < kAtOnce; ++j) sum += to_float(loaded[j]);
    }
    for (; added < count; ++added) sum += to_float(diagonal[added * step]);
    dbias[i] = sum;
  }
}

__global__ void __launch_bounds__(kThreads)
    lengths_kernel(AttentionShape s, const int32_t* key_lengths, int32_t* queries, int32_t* keys) {
  const Stride stride = grid_stride();
  for (int64_t row = stride.first; row < s.batch; row += stride.step) {
    queries[row] = static_cast<int32_t>(s.q_tokens);
    keys[row] = std::max(key_lengths[row], 1);
  }
}

/// A block a query of a row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    blind_queries_kernel(AttentionShape s, Visibility visibility, T* out, float* lse) {
  const int64_t row = blockIdx.x / s.q_tokens, query = blockIdx.x % s.q_tokens, width = s.heads * s.head_dim;
  if (visibility.keys_of(row, query).size() > 0) return;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) out[blockIdx.x * width + i] = from_float<T>(0.0F);
  for (int64_t head = threadIdx.x; head < s.heads; head += kThreads)
    lse[(row * s.heads + head) * s.q_tokens + query] = -INFINITY;
}

struct WithoutBlind {
  __device__ float operator()(float lse) const { return lse == -INFINITY ? INFINITY : lse; }
};

/// A block a key of a row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    hidden_keys_kernel(AttentionShape s, const int32_t* key_lengths, T* dk, T* dv) {
  const int64_t row = blockIdx.x / s.kv_tokens, key = blockIdx.x % s.kv_tokens, width = s.kv_heads * s.head_dim;
  if (key < key_lengths[row]) return;
  for (int64_t i = threadIdx.x; i < width; i += kThreads)
    dk[blockIdx.x * width + i] = dv[blockIdx.x * width + i] = from_float<T>(0.0F);
}

}  // namespace

Tensor bias_matrices(const AttentionShape& shape, const AttentionOptions& options, const AttentionSlice& slice,
                     DType dtype) {
  const Device device = options.bias.device();
  Tensor made = Tensor::empty(bias_matrices_shape(shape, slice), dtype, device);
  with_element(dtype, [&]<typename T>(T*) {
    launch("attention bias", device, {.blocks = slice.kv_heads * shape.q_tokens}, bias_kernel<T>, shape,
           slice.first_kv_head, elements<float>(options.bias), elements<T>(made));
  });
  return made;
}

Tensor document_matrices(const AttentionShape& shape, const AttentionOptions& options, const AttentionSlice& slice,
                         DType dtype) {
  const Device device = options.document_starts.device();
  Tensor made = Tensor::empty(document_matrices_shape(shape, slice), dtype, device);
  with_element(dtype, [&]<typename T>(T*) {
    launch("attention documents", device, {.blocks = slice.rows * shape.q_tokens}, document_kernel<T>, shape,
           elements<int32_t>(options.document_starts) + slice.first_row * shape.q_tokens, options.document_offset,
           elements<T>(made));
  });
  return made;
}

void bias_gradient(const AttentionShape& shape, const AttentionSlice& slice, const Tensor& dmatrices, Tensor& dbias) {
  const int64_t span = shape.q_tokens + shape.kv_tokens - 1;
  with_element(dmatrices.dtype(), [&]<typename T>(T*) {
    launch("attention bias", dbias.device(), grid_for(slice.kv_heads * span), bias_gradient_kernel<T>, shape,
           slice.kv_heads, slice.first_row > 0, elements<T>(dmatrices),
           elements<float>(dbias) + slice.first_kv_head * span);
  });
}

Lengths lengths_of(const AttentionShape& shape, const AttentionOptions& options) {
  const Device device = options.key_lengths.device();
  Lengths made{Tensor::empty({shape.batch}, DType::Int32, device), Tensor::empty({shape.batch}, DType::Int32, device)};
  launch("attention lengths", device, grid_for(shape.batch), lengths_kernel, shape,
         elements<int32_t>(options.key_lengths), elements<int32_t>(made.queries), elements<int32_t>(made.keys));
  return made;
}

void settle_blind_queries(const AttentionShape& shape, const AttentionOptions& options, Tensor& out, Tensor& lse) {
  with_element(out.dtype(), [&]<typename T>(T*) {
    launch("attention", out.device(), {.blocks = shape.batch * shape.q_tokens}, blind_queries_kernel<T>, shape,
           Visibility(shape, options), elements<T>(out), elements<float>(lse));
  });
}

Tensor lse_without_blind_queries(const Tensor& lse) {
  Tensor made = Tensor::empty(lse.shape(), DType::Float32, lse.device());
  map("attention_backward", lse.device(), lse.count(), WithoutBlind{}, elements<float>(made), elements<float>(lse));
  return made;
}

void clear_hidden_keys(const AttentionShape& shape, const AttentionOptions& options, Tensor& dk, Tensor& dv) {
  with_element(dk.dtype(), [&]<typename T>(T*) {
    launch("attention_backward", dk.device(), {.blocks = shape.batch * shape.kv_tokens}, hidden_keys_kernel<T>, shape,
           elements<int32_t>(options.key_lengths), elements<T>(dk), elements<T>(dv));
  });
}

}  // namespace trainyard::ops::cuda
