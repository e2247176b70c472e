#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION double sum_of_elements(const T* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(to_float(x[i]));
  return sum;
}

}  // namespace

Tensor sum(const Tensor& x) {
  constexpr int64_t kPart = kElementGrain;
  const int64_t count = x.count();
  std::vector<double> parts(static_cast<size_t>((count + kPart - 1) / kPart));
  with_element(x.dtype(), [&]<typename T>(T*) {
    parallel_for(static_cast<int64_t>(parts.size()), 1, [&, data = x.data<T>()](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        parts[static_cast<size_t>(part)] = sum_of_elements(data + part * kPart, std::min(kPart, count - part * kPart));
    });
  });
  double total = 0;
  for (const double part : parts) total += part;
  return Tensor::from<double>({&total, 1}, {1});
}

void fill(Tensor& x, float value) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    parallel_for(x.count(), kElementGrain, [data = x.data<T>(), value](int64_t begin, int64_t end) {
      std::fill(data + begin, data + end, from_float<T>(value));
    });
  });
}

}  // namespace trainyard::ops::cpu
