#include "ops/activation.h"

#include <stdexcept>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

// (1 + tanh(u)) / 2 = sigmoid(2u): the one exponential that vectorises serves here too.
constexpr float kTwiceRootTwoOverPi = 1.5957691216F, kCubic = 0.044715F;
constexpr float kRootHalf = 0.70710678F, kRootHalfOverPi = 0.39894228F;

/// The normal distribution up to x. libm's erf does not vectorise; an approximation of it would be no PyTorch's GELU.
TRAINYARD_INLINE float normal_up_to(float x) {
  return 0.5F * (1.0F + __builtin_erff(x * kRootHalf));
}

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
void gelu_elements(const T* x, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = from_float<T>(to_float(x[i]) * normal_up_to(to_float(x[i])));
}

template <typename T>
void gelu_backward_elements(const T* dy, const T* x, T* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float v = to_float(x[i]);
    const float slope = normal_up_to(v) + v * kRootHalfOverPi * exp_nonpositive(-0.5F * v * v);
    dx[i] = from_float<T>(to_float(dy[i]) * slope);
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void gelu_tanh_elements(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float v = to_float(x[i]);
    y[i] = from_float<T>(v * sigmoid(kTwiceRootTwoOverPi * (v + kCubic * v * v * v)));
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void gelu_tanh_backward_elements(const T* dy, const T* x, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float v = to_float(x[i]);
    const float s = sigmoid(kTwiceRootTwoOverPi * (v + kCubic * v * v * v));
    const float slope = s + v * s * (1.0F - s) * kTwiceRootTwoOverPi * (1.0F + 3.0F * kCubic * v * v);
    dx[i] = from_float<T>(to_float(dy[i]) * slope);
  }
}

/// The kernels of one function for one element type.
template <typename T>
struct Kernels {
  void (*forward)(const T* x, T* y, int64_t count);
  void (*backward)(const T* dy, const T* x, T* dx, int64_t count);
};

template <typename T>
Kernels<T> kernels_of(Activation f) {
  switch (f) {
    case Activation::Relu:
      return {relu_elements<T>, relu_backward_elements<T>};
    case Activation::Gelu:
      return {gelu_elements<T>, gelu_backward_elements<T>};
    case Activation::GeluTanh:
      return {gelu_tanh_elements<T>, gelu_tanh_backward_elements<T>};
  }
  throw std::logic_error("activation: no such function");
}

int64_t grain_of(Activation f) {
  return f == Activation::Relu ? kElementGrain : kElementGrain / 4;
}

}  // namespace

void activation(Activation f, const Tensor& x, Tensor& y) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    parallel_for(x.count(), grain_of(f),
                 [run = kernels_of<T>(f).forward, x = x.data<T>(), y = y.data<T>()](int64_t begin, int64_t end) {
                   run(x + begin, y + begin, end - begin);
                 });
  });
}

void activation_backward(Activation f, const Tensor& dy, const Tensor& x, Tensor& dx) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const T *const d = dy.data<T>(), *const v = x.data<T>();
    parallel_for(x.count(), grain_of(f),
                 [=, run = kernels_of<T>(f).backward, out = dx.data<T>()](int64_t begin, int64_t end) {
                   run(d + begin, v + begin, out + begin, end - begin);
                 });
  });
}

}  // namespace trainyard::ops::cpu
