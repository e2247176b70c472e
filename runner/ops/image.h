#pragma once

#include "tensor/tensor.h"

// What a small convolutional network needs besides products: a convolution is unfold, then matmul with its weights.
// Any of the ops' dtypes, one a call. All throw std::invalid_argument where shapes or dtypes do not fit.
namespace trainyard::ops {

/// Pixels are rows, channels lie side by side: a tensor [images * height * width, channels].
struct ImageShape {
  int64_t images = 0, height = 0, width = 0, channels = 0;

  [[nodiscard]] int64_t pixels() const { return images * height * width; }
};

/// The images that a kernel of size × size makes, one step at a time and inside the edges.
ImageShape convolved(ImageShape shape, int64_t size, int64_t channels);

/// The images that windows of size × size leave, side by side; what fills no window at an edge is left out.
ImageShape pooled(ImageShape shape, int64_t size);

/// The patch that each output pixel of a convolution sees: [out pixels, channels · size · size], ordered by channel,
/// then row, then column, as PyTorch orders a weight [out, channels, size, size].
void unfold(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& patches);

/// The way back: dx, written, is for each pixel the sum over the patches that it is part of.
void unfold_backward(const Tensor& dpatches, const ImageShape& shape, int64_t size, Tensor& dx);

/// y = the largest of each window of each channel; `chosen` [out pixels, channels] int32: which pixel of x that is, the
/// first of equals.
void max_pool(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& y, Tensor& chosen);

/// dx, written: dy at the chosen pixels, 0 elsewhere.
void max_pool_backward(const Tensor& dy, const Tensor& chosen, const ImageShape& shape, int64_t size, Tensor& dx);

/// y [images, channels · height · width]: each image by channels, as PyTorch flattens it.
void channels_first(const Tensor& x, const ImageShape& shape, Tensor& y);

/// The inverse, and so the way back.
void channels_last(const Tensor& y, const ImageShape& shape, Tensor& x);

}  // namespace trainyard::ops
