#pragma once

#include "ops/image.h"

// Where the elements of ops/image.h lie, for the kernels of every device.
namespace trainyard::ops {

/// A convolution's patches: one row an output pixel.
struct Patches {
  ImageShape in, out;
  int64_t size;

  Patches(const ImageShape& shape, int64_t kernel)
      : in(shape), out(convolved(shape, kernel, shape.channels)), size(kernel) {}

  [[nodiscard]] constexpr int64_t width() const { return in.channels * size * size; }
  /// The place in a patch of the element (i, j) of its window.
  [[nodiscard]] constexpr int64_t element(int64_t channel, int64_t i, int64_t j) const {
    return (channel * size + i) * size + j;
  }
};

/// The largest of one window: its pixel, the first of equals; a NaN is larger than all, as in PyTorch.
template <typename T>
constexpr int64_t largest_of(const T* x, const ImageShape& shape, int64_t first, int64_t size, int64_t channel) {
  int64_t best = first;
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j) {
      const int64_t pixel = first + i * shape.width + j;
      const auto value = static_cast<float>(x[pixel * shape.channels + channel]),
                 most = static_cast<float>(x[best * shape.channels + channel]);
      if (value > most || (value != value && most == most)) best = pixel;
    }
  return best;
}

}  // namespace trainyard::ops
