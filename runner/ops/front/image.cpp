#include "ops/image.h"

#include <fmt/format.h>

#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_size(std::string_view op, const ImageShape& shape, int64_t size) {
  if (shape.images >= 0 && shape.channels > 0 && size > 0 && shape.height >= size && shape.width >= size) return;
  throw std::invalid_argument(fmt::format("{}: {} images of {} x {} with {} channels, but windows of {} x {}", op,
                                          shape.images, shape.height, shape.width, shape.channels, size, size));
}

void require_images(std::string_view op, std::string_view name, const Tensor& x, const ImageShape& shape, DType dtype) {
  require_floating(op, name, x);
  require(op, name, x, {shape.pixels(), shape.channels}, dtype);
}

Shape patches_shape(const ImageShape& shape, int64_t size) {
  return {convolved(shape, size, shape.channels).pixels(), shape.channels * size * size};
}

}  // namespace

ImageShape convolved(ImageShape shape, int64_t size, int64_t channels) {
  return {shape.images, shape.height - size + 1, shape.width - size + 1, channels};
}

ImageShape pooled(ImageShape shape, int64_t size) {
  return {shape.images, shape.height / size, shape.width / size, shape.channels};
}

void unfold(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& patches) {
  const metrics::TraceSpan span("unfold", "op");
  require_size("unfold", shape, size);
  require_images("unfold", "x", x, shape, x.dtype());
  require("unfold", "patches", patches, patches_shape(shape, size), x.dtype());
  tell_cost({&x, &patches});
  kernel("unfold", &Kernels::unfold, {&x, &patches})(x, shape, size, patches);
}

void unfold_backward(const Tensor& dpatches, const ImageShape& shape, int64_t size, Tensor& dx) {
  const metrics::TraceSpan span("unfold_backward", "op");
  require_size("unfold_backward", shape, size);
  require_images("unfold_backward", "dx", dx, shape, dpatches.dtype());
  require("unfold_backward", "dpatches", dpatches, patches_shape(shape, size), dx.dtype());
  tell_cost({&dpatches, &dx});
  kernel("unfold_backward", &Kernels::unfold_backward, {&dpatches, &dx})(dpatches, shape, size, dx);
}

void max_pool(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& y, Tensor& chosen) {
  const metrics::TraceSpan span("max_pool", "op");
  require_size("max_pool", shape, size);
  require_images("max_pool", "x", x, shape, x.dtype());
  const ImageShape out = pooled(shape, size);
  require_images("max_pool", "y", y, out, x.dtype());
  require("max_pool", "chosen", chosen, y.shape(), DType::Int32);
  tell_cost({&x, &y, &chosen});
  kernel("max_pool", &Kernels::max_pool, {&x, &y, &chosen})(x, shape, size, y, chosen);
}

void max_pool_backward(const Tensor& dy, const Tensor& chosen, const ImageShape& shape, int64_t size, Tensor& dx) {
  const metrics::TraceSpan span("max_pool_backward", "op");
  require_size("max_pool_backward", shape, size);
  require_images("max_pool_backward", "dx", dx, shape, dy.dtype());
  require_images("max_pool_backward", "dy", dy, pooled(shape, size), dx.dtype());
  require("max_pool_backward", "chosen", chosen, dy.shape(), DType::Int32);
  require_indices("max_pool_backward", "chosen", chosen, shape.pixels());
  tell_cost({&dy, &chosen, &dx});
  kernel("max_pool_backward", &Kernels::max_pool_backward, {&dy, &chosen, &dx})(dy, chosen, shape, size, dx);
}

void channels_first(const Tensor& x, const ImageShape& shape, Tensor& y) {
  const metrics::TraceSpan span("channels_first", "op");
  require_images("channels_first", "x", x, shape, x.dtype());
  require("channels_first", "y", y, {shape.images, shape.channels * shape.height * shape.width}, x.dtype());
  tell_cost({&x, &y});
  kernel("channels_first", &Kernels::channels_first, {&x, &y})(x, shape, y);
}

void channels_last(const Tensor& y, const ImageShape& shape, Tensor& x) {
  const metrics::TraceSpan span("channels_last", "op");
  require_images("channels_last", "x", x, shape, y.dtype());
  require("channels_last", "y", y, {shape.images, shape.channels * shape.height * shape.width}, x.dtype());
  tell_cost({&y, &x});
  kernel("channels_last", &Kernels::channels_last, {&y, &x})(y, shape, x);
}

}  // namespace trainyard::ops
