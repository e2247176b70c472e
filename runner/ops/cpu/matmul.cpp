#include <algorithm>
#include <chrono>
#include <cstring>

#include "ops/cost.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/sgemm.h"

namespace trainyard::ops::cpu {
namespace {

/// A transposed `a` is read down its columns. With a power-of-two distance from row to row these fall on a few sets of
/// the first-level cache; where c is too narrow for oneDNN to repack `a` first, the product runs at 40 to 70 % of its
/// rate (weight gradients of layers 512, 1024, … wide).
bool reads_collide(const Tensor& a, const Tensor& c, const MatmulOptions& options) {
  constexpr int64_t kCollision = 512, kNarrow = 512;
  return options.a == Transpose::Yes && a.size(1) % kCollision == 0 && c.size(1) <= kNarrow &&
         (c.size(1) <= kNarrow / 2 || a.size(1) <= kNarrow);
}

/// aᵀ · b with the rows of `a` copied to a distance that is no power of two, a few at a time.
void spread_matmul(const Tensor& a, const Factor& b, Tensor& c, float beta) {
  constexpr int64_t kRows = 1024;
  const int64_t width = a.size(1), stride = width + 16;
  Tensor spread = Tensor::empty({std::min(a.size(0), kRows), stride}, DType::Float32);
  const float* const from = a.data<float>();
  float* const to = spread.data<float>();
  for (int64_t row = 0; row < a.size(0); row += kRows) {
    const int64_t rows = std::min(kRows, a.size(0) - row);
    parallel_for(rows, rows_grain(width), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(to + i * stride, from + (row + i) * width, static_cast<size_t>(width) * sizeof(float));
    });
    const int64_t b_at = b.transpose == Transpose::Yes ? row : row * b.stride;
    sgemm({.m = width, .n = c.size(1), .k = rows, .beta = row == 0 ? beta : 1.0F}, {to, stride, Transpose::Yes},
          {b.data + b_at, b.stride, b.transpose}, {c.data<float>(), c.size(1)});
  }
}

void product(const Tensor& a, const Tensor& b, Tensor& c, const MatmulOptions& options) {
  const Factor right{b.data<float>(), b.size(1), options.b};
  const float beta = options.accumulate ? 1.0F : 0.0F;
  if (reads_collide(a, c, options)) return spread_matmul(a, right, c, beta);
  const int64_t k = a.size(options.a == Transpose::Yes ? 0 : 1);
  sgemm({.m = c.size(0), .n = c.size(1), .k = k, .beta = beta}, {a.data<float>(), a.size(1), options.a}, right,
        {c.data<float>(), c.size(1)});
}

/// Of float32.
void float_matmul(const Tensor& a, const Tensor& b, Tensor& c, const MatmulOptions& options) {
  if (a.count() > 0)
    product(a, b, c, options);
  else if (!options.accumulate)
    set_zero(c);  // an empty sum
  if (options.bias.defined()) add_bias(c, in_float(options.bias));
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options) {
  if (c.count() == 0 || runs_elsewhere()) return;
  const Tensor left = in_float(a), right = in_float(b);
  if (c.dtype() == DType::Float32) return float_matmul(left, right, c, options);
  Tensor sums = Tensor::empty(c.shape(), DType::Float32);
  float_matmul(left, right, sums, {.a = options.a, .b = options.b, .bias = options.bias});
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
