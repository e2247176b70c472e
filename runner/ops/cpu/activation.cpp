#include "ops/activation.h"

#include "ops/cpu/elements.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"

namespace trainyard::ops::cpu {
namespace {

// (1 + tanh(u)) / 2 = sigmoid(2u): the one exponential that vectorises serves here too.
constexpr float kTwiceRootTwoOverPi = 1.5957691216F, kCubic = 0.044715F;

template <typename T>
TRAINYARD_MULTIVERSION void relu_elements(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float value = to_float(x[i]);
    y[i] = from_float<T>(value < 0 ? 0.0F : value);  // a NaN stays one
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void relu_backward_elements(const T* dy, const T* x, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = from_float<T>(to_float(x[i]) > 0 ? to_float(dy[i]) : 0.0F);
}

template <typename T>
TRAINYARD_MULTIVERSION void gelu_elements(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float v = to_float(x[i]);
    y[i] = from_float<T>(v * sigmoid(kTwiceRootTwoOverPi * (v + kCubic * v * v * v)));
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void gelu_backward_elements(const T* dy, const T* x, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float v = to_float(x[i]);
    const float s = sigmoid(kTwiceRootTwoOverPi * (v + kCubic * v * v * v));
    const float slope = s + v * s * (1.0F - s) * kTwiceRootTwoOverPi * (1.0F + 3.0F * kCubic * v * v);
    dx[i] = from_float<T>(to_float(dy[i]) * slope);
  }
}

}  // namespace

void activation(Activation f, const Tensor& x, Tensor& y) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const int64_t grain = f == Activation::Relu ? kElementGrain : kElementGrain / 4;
    parallel_for(x.count(), grain, [f, x = x.data<T>(), y = y.data<T>()](int64_t begin, int64_t end) {
      if (f == Activation::Relu) return relu_elements(x + begin, y + begin, end - begin);
      gelu_elements(x + begin, y + begin, end - begin);
    });
  });
}

void activation_backward(Activation f, const Tensor& dy, const Tensor& x, Tensor& dx) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const int64_t grain = f == Activation::Relu ? kElementGrain : kElementGrain / 4;
    const T *const d = dy.data<T>(), *const v = x.data<T>();
    parallel_for(x.count(), grain, [=, out = dx.data<T>()](int64_t begin, int64_t end) {
      if (f == Activation::Relu) return relu_backward_elements(d + begin, v + begin, out + begin, end - begin);
      gelu_backward_elements(d + begin, v + begin, out + begin, end - begin);
    });
  });
}

}  // namespace trainyard::ops::cpu
