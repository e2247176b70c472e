#include <algorithm>
#include <chrono>
#include <cstring>

#include "ops/cpu/kernels.h"
#include "ops/cpu/sgemm.h"

namespace trainyard::ops::cpu {
namespace {

void float_matmul(const Tensor& a, const Tensor& b, Tensor& c, const MatmulOptions& options) {
  const int64_t k = a.size(options.a == Transpose::Yes ? 0 : 1);
  sgemm({.m = c.size(0), .n = c.size(1), .k = k, .beta = options.accumulate ? 1.0F : 0.0F},
        {a.data<float>(), a.size(1), options.a}, {b.data<float>(), b.size(1), options.b}, {c.data<float>(), c.size(1)});
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options) {
  if (c.count() == 0) return;
  if (a.count() == 0) {  // an empty sum
    if (!options.accumulate) std::memset(c.raw(), 0, c.bytes());
    return;
  }
  const Tensor left = in_float(a), right = in_float(b);
  if (c.dtype() == DType::Float32) return float_matmul(left, right, c, options);
  Tensor sums = Tensor::empty(c.shape(), DType::Float32);
  float_matmul(left, right, sums, {.a = options.a, .b = options.b});
  if (options.accumulate)
    add_to(c, sums);
  else
    cast(sums, c);
}

}  // namespace trainyard::ops::cpu

namespace trainyard::ops {

double measure_matmul_peak() {
  constexpr int64_t kSize = 1024;
  using Clock = std::chrono::steady_clock;
  const Tensor a = Tensor::zeros({kSize, kSize}, DType::Float32), b = Tensor::zeros({kSize, kSize}, DType::Float32);
  Tensor c = Tensor::empty({kSize, kSize}, DType::Float32);
  matmul(a, b, c);  // generates the kernel and wakes the threads
  double best = 0;
  const auto enough = Clock::now() + std::chrono::milliseconds(250);
  for (int run = 0; run < 3 || Clock::now() < enough; ++run) {
    const auto start = Clock::now();
    matmul(a, b, c);
    best = std::max(best, 2.0 * kSize * kSize * kSize / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace trainyard::ops
