#include <vector>

#include "ops/cuda/kernels.h"
#include "ops/cuda/map.cuh"
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

/// parts[block] = Σ f(x) over the elements that the block strides over.
template <int kCount, typename F, typename T>
__global__ void __launch_bounds__(kThreads) parts_kernel(int64_t count, F f, const T* x, double* parts) {
  const Stride stride = grid_stride();
  const int64_t packs = count / kCount;
  double sum = 0;
  for (int64_t i = stride.first; i < packs; i += stride.step) {
    const auto pack = load<kCount>(x, i);
    for (int k = 0; k < kCount; ++k) sum += f(to_float(pack.values[k]));
  }
  for (int64_t i = packs * kCount + stride.first; i < count; i += stride.step) sum += f(to_float(x[i]));
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

/// total = Σ parts, by one block.
__global__ void __launch_bounds__(kThreads) total_kernel(int64_t count, const double* parts, double* total) {
  double sum = 0;
  for (int64_t part = threadIdx.x; part < count; part += blockDim.x) sum += parts[part];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = sum;
}

/// Σ f(x), float64 [1]: by block, of which there are as many as `count` asks for on any device, then over the blocks.
template <typename F>
Tensor reduce(const char* name, const F& f, const Tensor& x) {
  if (x.count() == 0) return Tensor::zeros({1}, DType::Float64, x.device());
  Tensor total = Tensor::empty({1}, DType::Float64, x.device());
  with_element(x.dtype(), [&]<typename T>(T*) {
    with_packs(
        true,
        [&](auto width) {
          constexpr int64_t kPacksOfThread = 8, kMostParts = 1024;
          const int64_t blocks =
              std::clamp<int64_t>(x.count() / (width.value * kPacksOfThread * kThreads), 1, kMostParts);
          Tensor parts = Tensor::empty({blocks}, DType::Float64, x.device());
          launch(name, x.device(), {.blocks = blocks}, parts_kernel<width.value, F, T>, x.count(), f, elements<T>(x),
                 elements<double>(parts));
          launch(name, x.device(), {}, total_kernel, blocks, elements<double>(std::as_const(parts)),
                 elements<double>(total));
        },
        elements<T>(x));
  });
  return total;
}

double value_of(const Tensor& total) {
  return on_device(total, {}).values<double>()[0];
}

}  // namespace

double sum(const Tensor& x) {
  return value_of(reduce("sum", Itself{}, x));
}

Tensor sum_of_squares(const Tensor& x) {
  return reduce("sum_of_squares", Square{}, x);
}

bool all_finite(const Tensor& x) {
  return value_of(reduce("all_finite", NotFinite{}, x)) == 0;
}

void set_zero(Tensor& x) {
  if (x.count() > 0) accelerator()->set_zero(current_stream(x.device()), x.raw(), x.bytes());
}

}  // namespace trainyard::ops::cuda
