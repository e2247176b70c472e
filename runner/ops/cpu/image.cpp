#include <algorithm>
#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"
#include "ops/image_windows.h"

namespace trainyard::ops::cpu {
namespace {

/// Calls body(patch element, pixel element) for each of the patch of output pixel (row, column) of `image`.
template <typename Body>
TRAINYARD_INLINE void each(const Patches& of, int64_t image, int64_t row, int64_t column, const Body& body) {
  for (int64_t i = 0; i < of.size; ++i)
    for (int64_t j = 0; j < of.size; ++j) {
      const int64_t pixel = ((image * of.in.height + row + i) * of.in.width + column + j) * of.in.channels;
      for (int64_t channel = 0; channel < of.in.channels; ++channel) body(of.element(channel, i, j), pixel + channel);
    }
}

/// out [columns, rows] = in [rows, columns], for each image.
void transpose_images(const Tensor& in, int64_t images, int64_t rows, int64_t columns, Tensor& out) {
  with_element(in.dtype(), [&]<typename T>(T*) {
    parallel_for(images, 1, [&, in = in.data<T>(), out = out.data<T>()](int64_t begin, int64_t end) {
      for (int64_t image = begin; image < end; ++image) {
        const T* const from = in + image * rows * columns;
        T* const to = out + image * rows * columns;
        for (int64_t column = 0; column < columns; ++column)
          for (int64_t row = 0; row < rows; ++row) to[column * rows + row] = from[row * columns + column];
      }
    });
  });
}

}  // namespace

void unfold(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& patches) {
  const Patches of(shape, size);
  with_element(x.dtype(), [&]<typename T>(T*) {
    parallel_for(shape.images, 1, [&, x = x.data<T>(), patches = patches.data<T>()](int64_t begin, int64_t end) {
      T* patch = patches + begin * of.out.height * of.out.width * of.width();
      for (int64_t image = begin; image < end; ++image)
        for (int64_t row = 0; row < of.out.height; ++row)
          for (int64_t column = 0; column < of.out.width; ++column, patch += of.width())
            each(of, image, row, column, [&](int64_t element, int64_t pixel) { patch[element] = x[pixel]; });
    });
  });
}

void unfold_backward(const Tensor& dpatches, const ImageShape& shape, int64_t size, Tensor& dx) {
  const Patches of(shape, size);
  const int64_t image_size = shape.height * shape.width * shape.channels;
  with_element(dx.dtype(), [&]<typename T>(T*) {
    parallel_for(shape.images, 1, [&, patches = dpatches.data<T>(), dx = dx.data<T>()](int64_t begin, int64_t end) {
      std::vector<float> sums(static_cast<size_t>(image_size));
      const T* patch = patches + begin * of.out.height * of.out.width * of.width();
      for (int64_t image = begin; image < end; ++image) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (int64_t row = 0; row < of.out.height; ++row)
          for (int64_t column = 0; column < of.out.width; ++column, patch += of.width())
            each(of, 0, row, column,
                 [&](int64_t element, int64_t pixel) { sums[static_cast<size_t>(pixel)] += to_float(patch[element]); });
        for (int64_t i = 0; i < image_size; ++i)
          dx[image * image_size + i] = from_float<T>(sums[static_cast<size_t>(i)]);
      }
    });
  });
}

void max_pool(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& y, Tensor& chosen) {
  const ImageShape out = pooled(shape, size);
  with_element(x.dtype(), [&]<typename T>(T*) {
    const T* const in = x.data<T>();
    parallel_for(out.images * out.height, 1,
                 [&, y = y.data<T>(), chosen = chosen.data<int32_t>()](int64_t begin, int64_t end) {
                   for (int64_t line = begin; line < end; ++line)
                     for (int64_t column = 0; column < out.width; ++column)
                       for (int64_t channel = 0; channel < out.channels; ++channel) {
                         const int64_t image = line / out.height, row = line % out.height;
                         const int64_t first = (image * shape.height + row * size) * shape.width + column * size;
                         const int64_t best = largest_of(in, shape, first, size, channel);
                         const int64_t at = (line * out.width + column) * out.channels + channel;
                         y[at] = in[best * shape.channels + channel];
                         chosen[at] = static_cast<int32_t>(best);
                       }
                 });
  });
}

void max_pool_backward(const Tensor& dy, const Tensor& chosen, const ImageShape& shape, int64_t size, Tensor& dx) {
  const ImageShape out = pooled(shape, size);
  fill(dx, 0);
  with_element(dy.dtype(), [&]<typename T>(T*) {
    const T* const gradient = dy.data<T>();
    // Windows do not overlap, so no two write to one element.
    parallel_for(out.pixels(), rows_grain(out.channels),
                 [&, dx = dx.data<T>(), chosen = chosen.data<int32_t>()](int64_t begin, int64_t end) {
                   for (int64_t at = begin * out.channels; at < end * out.channels; ++at)
                     dx[chosen[at] * shape.channels + at % out.channels] = gradient[at];
                 });
  });
}

void channels_first(const Tensor& x, const ImageShape& shape, Tensor& y) {
  transpose_images(x, shape.images, shape.height * shape.width, shape.channels, y);
}

void channels_last(const Tensor& y, const ImageShape& shape, Tensor& x) {
  transpose_images(y, shape.images, shape.channels, shape.height * shape.width, x);
}

}  // namespace trainyard::ops::cpu
