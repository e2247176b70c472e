#include "ops/multiply.h"

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION void multiply_elements(const T* a, const T* b, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = from_float<T>(to_float(a[i]) * to_float(b[i]));
}

}  // namespace

void multiply(const Tensor& a, const Tensor& b, Tensor& y) {
  with_element(a.dtype(), [&]<typename T>(T*) {
    parallel_for(a.count(), kElementGrain,
                 [a = a.data<T>(), b = b.data<T>(), y = y.data<T>()](int64_t begin, int64_t end) {
                   multiply_elements(a + begin, b + begin, y + begin, end - begin);
                 });
  });
}

}  // namespace trainyard::ops::cpu
