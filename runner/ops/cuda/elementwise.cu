#include "ops/cuda/kernels.h"
#include "ops/cuda/map.cuh"
#include "ops/elements.h"

namespace trainyard::ops::cuda {
namespace {

struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Times {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Scaled {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
struct Constant {
  float value;
  __device__ float operator()() const { return value; }
};

// (1 + tanh(u)) / 2 = sigmoid(2u)
constexpr float kTwiceRootTwoOverPi = 1.5957691216F, kCubic = 0.044715F;

/// e^-x may be infinite, which gives 0, and a NaN stays one.
__device__ inline float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}

struct Relu {
  __device__ float operator()(float x) const { return x < 0 ? 0.0F : x; }
};
struct ReluBackward {
  __device__ float operator()(float dy, float x) const { return x > 0 ? dy : 0.0F; }
};
struct GeluTanh {
  __device__ float operator()(float x) const { return x * sigmoid(kTwiceRootTwoOverPi * (x + kCubic * x * x * x)); }
};
struct GeluTanhBackward {
  __device__ float operator()(float dy, float x) const {
    const float s = sigmoid(kTwiceRootTwoOverPi * (x + kCubic * x * x * x));
    return dy * (s + x * s * (1.0F - s) * kTwiceRootTwoOverPi * (1.0F + 3.0F * kCubic * x * x));
  }
};

/// The normal distribution up to x, and its density.
__device__ inline float normal_up_to(float x) {
  return 0.5F * (1.0F + erff(x * 0.70710678F));
}
__device__ inline float normal_at(float x) {
  return 0.39894228F * expf(-0.5F * x * x);
}
struct Gelu {
  __device__ float operator()(float x) const { return x * normal_up_to(x); }
};
struct GeluBackward {
  __device__ float operator()(float dy, float x) const { return dy * (normal_up_to(x) + x * normal_at(x)); }
};
struct Swiglu {
  __device__ float operator()(float gate, float up) const { return gate * sigmoid(gate) * up; }
};

/// Both gradients in one pass: either may be written over gate, up or dy.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads)
    swiglu_backward_kernel(int64_t packs, const T* dy, const T* gate, const T* up, T* dgate, T* dup) {
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < packs; i += stride.step) {
    const auto d = load<kCount>(dy, i), g = load<kCount>(gate, i), u = load<kCount>(up, i);
    Pack<T, kCount> to_gate, to_up;
    for (int k = 0; k < kCount; ++k) {
      const float of_y = to_float(d.values[k]), x = to_float(g.values[k]), s = sigmoid(x);
      to_gate.values[k] = from_float<T>(of_y * to_float(u.values[k]) * s * (1.0F + x * (1.0F - s)));
      to_up.values[k] = from_float<T>(of_y * x * s);
    }
    store<kCount>(dgate, i, to_gate);
    store<kCount>(dup, i, to_up);
  }
}

template <typename F>
void map_one(const char* name, const F& f, const Tensor& x, Tensor& y) {
  with_element(x.dtype(), [&]<typename T>(T*) { map(name, x.device(), x.count(), f, elements<T>(y), elements<T>(x)); });
}

template <typename F>
void map_two(const char* name, const F& f, const Tensor& a, const Tensor& b, Tensor& y) {
  with_element(a.dtype(), [&]<typename T>(T*) {
    map(name, a.device(), a.count(), f, elements<T>(y), elements<T>(a), elements<T>(b));
  });
}

}  // namespace

void add(const Tensor& a, const Tensor& b, Tensor& out) {
  map_two("add", Plus{}, a, b, out);
}

void add_to(Tensor& total, const Tensor& addend) {
  with_elements(total.dtype(), addend.dtype(), [&]<typename T, typename A>(T*, A*) {
    map("add_to", total.device(), total.count(), Plus{}, elements<T>(total), elements<T>(std::as_const(total)),
        elements<A>(addend));
  });
}

void cast(const Tensor& from, Tensor& to) {
  with_elements(from.dtype(), to.dtype(), [&]<typename From, typename To>(From*, To*) {
    map("cast", from.device(), from.count(), Same{}, elements<To>(to), elements<From>(from));
  });
}

void fill(Tensor& x, float value) {
  with_element(x.dtype(), [&]<typename T>(T*) { map("fill", x.device(), x.count(), Constant{value}, elements<T>(x)); });
}

void multiply(const Tensor& a, const Tensor& b, Tensor& y) {
  map_two("multiply", Times{}, a, b, y);
}

void scale(Tensor& x, float factor) {
  map_one("scale", Scaled{factor}, x, x);
}

void activation(Activation f, const Tensor& x, Tensor& y) {
  switch (f) {
    case Activation::Relu:
      return map_one("activation", Relu{}, x, y);
    case Activation::Gelu:
      return map_one("activation", Gelu{}, x, y);
    case Activation::GeluTanh:
      return map_one("activation", GeluTanh{}, x, y);
  }
}

void activation_backward(Activation f, const Tensor& dy, const Tensor& x, Tensor& dx) {
  switch (f) {
    case Activation::Relu:
      return map_two("activation_backward", ReluBackward{}, dy, x, dx);
    case Activation::Gelu:
      return map_two("activation_backward", GeluBackward{}, dy, x, dx);
    case Activation::GeluTanh:
      return map_two("activation_backward", GeluTanhBackward{}, dy, x, dx);
  }
}

void swiglu(const Tensor& gate, const Tensor& up, Tensor& y) {
  map_two("swiglu", Swiglu{}, gate, up, y);
}

void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, Tensor& dgate, Tensor& dup) {
  const int64_t count = gate.count();
  if (count == 0) return;
  with_element(gate.dtype(), [&]<typename T>(T*) {
    with_packs(
        count % kWide<T> == 0,
        [&](auto width) {
          const int64_t packs = count / width.value;
          launch("swiglu_backward", gate.device(), grid_for(packs), swiglu_backward_kernel<width.value, T>, packs,
                 elements<T>(dy), elements<T>(gate), elements<T>(up), elements<T>(dgate), elements<T>(dup));
        },
        elements<T>(dy), elements<T>(gate), elements<T>(up), elements<T>(dgate), elements<T>(dup));
  });
}

}  // namespace trainyard::ops::cuda
