#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

constexpr int64_t kGrain = kElementGrain / 4;  // an exponential costs about four plain elements

template <typename T>
TRAINYARD_MULTIVERSION void forward_elements(const T* gate, const T* up, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = to_float(gate[i]);
    y[i] = from_float<T>(g * sigmoid(g) * to_float(up[i]));
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void backward_elements(const T* dy, const T* gate, const T* up, T* dgate, T* dup,
                                              int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float d = to_float(dy[i]), g = to_float(gate[i]), u = to_float(up[i]);
    const float s = sigmoid(g);
    dgate[i] = from_float<T>(d * u * s * (1.0F + g * (1.0F - s)));
    dup[i] = from_float<T>(d * g * s);
  }
}

}  // namespace

void swiglu(const Tensor& gate, const Tensor& up, Tensor& y) {
  with_element(gate.dtype(), [&]<typename T>(T*) {
    parallel_for(gate.count(), kGrain,
                 [gate = gate.data<T>(), up = up.data<T>(), y = y.data<T>()](int64_t begin, int64_t end) {
                   forward_elements(gate + begin, up + begin, y + begin, end - begin);
                 });
  });
}

void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, Tensor& dgate, Tensor& dup) {
  with_element(gate.dtype(), [&]<typename T>(T*) {
    const T *const d = dy.data<T>(), *const g = gate.data<T>(), *const u = up.data<T>();
    parallel_for(gate.count(), kGrain, [=, dg = dgate.data<T>(), du = dup.data<T>()](int64_t begin, int64_t end) {
      backward_elements(d + begin, g + begin, u + begin, dg + begin, du + begin, end - begin);
    });
  });
}

}  // namespace trainyard::ops::cpu
