#include <cstring>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION void scale_elements(T* x, float factor, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) x[i] = from_float<T>(to_float(x[i]) * factor);
}

}  // namespace

void scale(Tensor& x, float factor) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    parallel_for(x.count(), kElementGrain, [x = x.data<T>(), factor](int64_t begin, int64_t end) {
      scale_elements(x + begin, factor, end - begin);
    });
  });
}

void set_zero(Tensor& x) {
  if (x.count() > 0 && !dry_run()) std::memset(x.raw(), 0, x.bytes());
}

}  // namespace trainyard::ops::cpu
