#include <vector>

#include "ops/clip_formula.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/tensor_list.cuh"
#include "ops/elements.h"
#include "tensor/accelerator.h"

namespace trainyard::ops::cuda {
namespace {

struct Itself {
  __device__ double operator()(float x) const { return x; }
};
struct Square {
  __device__ double operator()(float x) const { return static_cast<double>(x) * x; }
};
/// How many are NaN or infinite: x − x is 0 of all others.
struct NotFinite {
  __device__ double operator()(float x) const { return x - x == 0 ? 0 : 1; }
};

template <typename T>
struct Entry : ListedTensor {
  const T* x;
};

/// parts[chunk] = Σ f(x) over the chunk's elements.
template <typename F, typename T>
__global__ void __launch_bounds__(kThreads) parts_kernel(int count, const Entry<T>* entries, F f, double* parts) {
  const Entry<T>& entry = entry_of(entries, count, blockIdx.x);
  double sum = 0;
  for_chunk<kWide<T>>(entry, blockIdx.x, [&](auto width, int64_t i) {
    constexpr int kCount = decltype(width)::value;
    const auto pack = load<kCount>(entry.x, i);
    for (int k = 0; k < kCount; ++k) sum += f(to_float(pack.values[k]));
  });
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

/// Σ values of [begin, end), by one block.
__device__ void sum_up(int64_t begin, int64_t end, const double* values, double* total) {
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += values[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = sum;
}

/// of_each[tensor] = Σ its chunks' parts.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    each_kernel(int count, const Entry<T>* entries, int64_t chunks, const double* parts, double* of_each) {
  const int tensor = static_cast<int>(blockIdx.x);
  const int64_t end = tensor + 1 < count ? entries[tensor + 1].first_chunk : chunks;
  sum_up(entries[tensor].first_chunk, end, parts, of_each + tensor);
}
__global__ void __launch_bounds__(kThreads) total_kernel(int64_t count, const double* of_each, double* total) {
  sum_up(0, count, of_each, total);
}

/// Σ f(x) of each tensor, and of all: by chunks, whose number depends on sizes alone.
template <typename F>
SquareSums reduce(const char* name, const F& f, std::span<const Tensor> tensors) {
  const Device device = tensors.front().device();
  const auto count = static_cast<int64_t>(tensors.size());
  SquareSums sums{Tensor::empty({count}, DType::Float64, device), Tensor::empty({1}, DType::Float64, device)};
  with_element(tensors.front().dtype(), [&]<typename T>(T*) {
    std::vector<Entry<T>> entries;
    for (const Tensor& x : tensors) {
      const T* const data = elements<T>(x);
      entries.push_back({{.count = x.count(), .is_wide = are_wide<kWide<T>>(data)}, data});
    }
    const TensorList<Entry<T>> list(std::move(entries), device);
    Tensor parts = Tensor::empty({list.chunks}, DType::Float64, device);
    if (list.chunks > 0)
      launch(name, device, {.blocks = list.chunks}, parts_kernel<F, T>, list.count, list.entries(), f,
             elements<double>(parts));
    launch(name, device, {.blocks = count}, each_kernel<T>, list.count, list.entries(), list.chunks,
           elements<double>(std::as_const(parts)), elements<double>(sums.of_each));
    launch(name, device, {}, total_kernel, count, elements<double>(std::as_const(sums.of_each)),
           elements<double>(sums.total));
  });
  return sums;
}

/// One thread does it: there are only as many numbers as ranks.
__global__ void clip_kernel(int64_t ranks, int64_t columns, const double* squares, double limit, double loss_scale,
                            float* factor) {
  double sum = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) sum += squares[rank * columns];
  *factor = clip_factor_of(sqrt(sum) / loss_scale, limit, loss_scale);
}

}  // namespace

Tensor sum(const Tensor& x) {
  return reduce("sum", Itself{}, {&x, 1}).total;
}

SquareSums sums_of_squares(std::span<const Tensor> tensors) {
  return reduce("sums_of_squares", Square{}, tensors);
}

Tensor clip_factor(const Tensor& squares, double limit, double loss_scale) {
  Tensor factor = Tensor::empty({1}, DType::Float32, squares.device());
  launch("clip_factor", squares.device(), {.threads = 1}, clip_kernel, squares.size(0), squares.size(1),
         elements<double>(squares), limit, loss_scale, elements<float>(factor));
  return factor;
}

bool all_finite(const Tensor& x) {
  const Tensor here = on_device(reduce("all_finite", NotFinite{}, {&x, 1}).total, {});
  return here.values<double>()[0] == 0;
}

void set_zero(Tensor& x) {
  if (x.count() > 0) accelerator()->set_zero(current_stream(x.device()), x.raw(), x.bytes());
}

}  // namespace trainyard::ops::cuda
