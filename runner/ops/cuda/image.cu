#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"
#include "ops/image_windows.h"

namespace trainyard::ops::cuda {
namespace {

/// An element of a [pixels, channels] tensor, by its place.
struct Element {
  int64_t image, row, column, channel;

  __device__ Element(const ImageShape& shape, int64_t at) {
    channel = at % shape.channels, at /= shape.channels;
    column = at % shape.width, at /= shape.width;
    row = at % shape.height, image = at / shape.height;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) unfold_kernel(int64_t count, Patches of, const T* x, T* patches) {
  const Stride stride = grid_stride();
  for (int64_t at = stride.first; at < count; at += stride.step) {
    const int64_t pixel = at / of.width(), element = at % of.width();
    const int64_t image = pixel / (of.out.height * of.out.width),
                  row = pixel / of.out.width % of.out.height + element / of.size % of.size,
                  column = pixel % of.out.width + element % of.size, channel = element / (of.size * of.size);
    patches[at] = x[((image * of.in.height + row) * of.in.width + column) * of.in.channels + channel];
  }
}

/// A thread an element of an image: it adds up the patches that it is part of, in the order of their pixels.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    unfold_backward_kernel(int64_t count, Patches of, const T* dpatches, T* dx) {
  const Stride stride = grid_stride();
  for (int64_t at = stride.first; at < count; at += stride.step) {
    const Element x(of.in, at);
    float sum = 0;
    for (int64_t row = std::max<int64_t>(x.row - of.size + 1, 0); row <= std::min(x.row, of.out.height - 1); ++row)
      for (int64_t column = std::max<int64_t>(x.column - of.size + 1, 0);
           column <= std::min(x.column, of.out.width - 1); ++column) {
        const int64_t patch = (x.image * of.out.height + row) * of.out.width + column;
        sum += to_float(dpatches[patch * of.width() + of.element(x.channel, x.row - row, x.column - column)]);
      }
    dx[at] = from_float<T>(sum);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    max_pool_kernel(int64_t count, ImageShape shape, ImageShape out, int64_t size, const T* x, T* y, int32_t* chosen) {
  const Stride stride = grid_stride();
  for (int64_t at = stride.first; at < count; at += stride.step) {
    const Element to(out, at);
    const int64_t first = (to.image * shape.height + to.row * size) * shape.width + to.column * size;
    const int64_t best = largest_of(x, shape, first, size, to.channel);
    y[at] = x[best * shape.channels + to.channel];
    chosen[at] = static_cast<int32_t>(best);
  }
}

/// Windows do not overlap, so no two threads write to one element.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    max_pool_backward_kernel(int64_t count, int64_t channels, const T* dy, const int32_t* chosen, T* dx) {
  const Stride stride = grid_stride();
  for (int64_t at = stride.first; at < count; at += stride.step) dx[chosen[at] * channels + at % channels] = dy[at];
}

/// out [columns, rows] = in [rows, columns], for each image.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(int64_t count, int64_t rows, int64_t columns, const T* in, T* out) {
  const Stride stride = grid_stride();
  for (int64_t at = stride.first; at < count; at += stride.step) {
    const int64_t row = at % rows, column = at / rows % columns, image = at / (rows * columns);
    out[at] = in[(image * rows + row) * columns + column];
  }
}

void transpose_images(const char* name, const Tensor& in, int64_t rows, int64_t columns, Tensor& out) {
  if (in.count() == 0) return;
  with_element(in.dtype(), [&]<typename T>(T*) {
    launch(name, in.device(), grid_for(in.count()), transpose_kernel<T>, in.count(), rows, columns, elements<T>(in),
           elements<T>(out));
  });
}

}  // namespace

void unfold(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& patches) {
  if (patches.count() == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    launch("unfold", x.device(), grid_for(patches.count()), unfold_kernel<T>, patches.count(), Patches(shape, size),
           elements<T>(x), elements<T>(patches));
  });
}

void unfold_backward(const Tensor& dpatches, const ImageShape& shape, int64_t size, Tensor& dx) {
  if (dx.count() == 0) return;
  with_element(dx.dtype(), [&]<typename T>(T*) {
    launch("unfold_backward", dx.device(), grid_for(dx.count()), unfold_backward_kernel<T>, dx.count(),
           Patches(shape, size), elements<T>(dpatches), elements<T>(dx));
  });
}

void max_pool(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& y, Tensor& chosen) {
  if (y.count() == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    launch("max_pool", x.device(), grid_for(y.count()), max_pool_kernel<T>, y.count(), shape, pooled(shape, size), size,
           elements<T>(x), elements<T>(y), elements<int32_t>(chosen));
  });
}

void max_pool_backward(const Tensor& dy, const Tensor& chosen, const ImageShape& shape, int64_t, Tensor& dx) {
  set_zero(dx);
  if (dy.count() == 0) return;
  with_element(dy.dtype(), [&]<typename T>(T*) {
    launch("max_pool_backward", dy.device(), grid_for(dy.count()), max_pool_backward_kernel<T>, dy.count(),
           shape.channels, elements<T>(dy), elements<int32_t>(chosen), elements<T>(dx));
  });
}

void channels_first(const Tensor& x, const ImageShape& shape, Tensor& y) {
  transpose_images("channels_first", x, shape.height * shape.width, shape.channels, y);
}

void channels_last(const Tensor& y, const ImageShape& shape, Tensor& x) {
  transpose_images("channels_last", y, shape.channels, shape.height * shape.width, x);
}

}  // namespace trainyard::ops::cuda
