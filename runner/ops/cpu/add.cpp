#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename A, typename B, typename Out>
TRAINYARD_MULTIVERSION void add_elements(const A* a, const B* b, Out* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = from_float<Out>(to_float(a[i]) + to_float(b[i]));
}

}  // namespace

void add(const Tensor& a, const Tensor& b, Tensor& out) {
  with_element(a.dtype(), [&]<typename T>(T*) {
    parallel_for(a.count(), kElementGrain,
                 [a = a.data<T>(), b = b.data<T>(), out = out.data<T>()](int64_t begin, int64_t end) {
                   add_elements(a + begin, b + begin, out + begin, end - begin);
                 });
  });
}

void add_to(Tensor& total, const Tensor& addend) {
  with_elements(total.dtype(), addend.dtype(), [&]<typename T, typename A>(T*, A*) {
    parallel_for(total.count(), kElementGrain,
                 [total = total.data<T>(), addend = addend.data<A>()](int64_t begin, int64_t end) {
                   add_elements(total + begin, addend + begin, total + begin, end - begin);
                 });
  });
}

}  // namespace trainyard::ops::cpu
