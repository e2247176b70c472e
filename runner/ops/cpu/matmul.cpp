#include <dnnl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "ops/cpu/kernels.h"

namespace trainyard::ops::cpu {
namespace {

/// `tensor` in float32: itself, or a copy.
Tensor in_float(const Tensor& tensor) {
  if (tensor.dtype() == DType::Float32) return tensor;
  Tensor converted = Tensor::empty(tensor.shape(), DType::Float32);
  cast(tensor, converted);
  return converted;
}

void sgemm(const Tensor& a, const Tensor& b, Tensor& c, const MatmulOptions& options) {
  const bool transpose_a = options.a == Transpose::Yes, transpose_b = options.b == Transpose::Yes;
  const int64_t m = c.size(0), n = c.size(1), k = a.size(transpose_a ? 0 : 1);
  // oneDNN wants a leading dimension of at least 1.
  const auto leading = [](const Tensor& tensor) { return std::max<int64_t>(tensor.size(1), 1); };
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0F, a.data<float>(), leading(a), b.data<float>(),
                 leading(b), options.accumulate ? 1.0F : 0.0F, c.data<float>(), leading(c));
  if (status != dnnl_success)
    throw std::runtime_error(fmt::format("matmul: oneDNN refused a product of {} x {} x {} (status {})", m, k, n, static_cast<int>(status)));
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options) {
  if (c.count() == 0) return;
  if (a.count() == 0) {  // an empty sum
    if (!options.accumulate) std::memset(c.raw(), 0, c.bytes());
    return;
  }
  const Tensor left = in_float(a), right = in_float(b);
  if (c.dtype() == DType::Float32) return sgemm(left, right, c, options);
  Tensor sums = Tensor::empty(c.shape(), DType::Float32);
  sgemm(left, right, sums, {.a = options.a, .b = options.b});
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
