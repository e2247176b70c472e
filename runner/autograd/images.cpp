#include "autograd/functions.h"

#include <utility>
#include <vector>

#include "autograd/recompute.h"
#include "ops/bias.h"
#include "ops/matmul.h"

namespace trainyard::autograd {

Variable convolution(const Variable& input, const ops::ImageShape& shape, Parameter& weight, Parameter& bias) {
  const Variable x = cast(input, weight.value().dtype());
  const int64_t out = weight.shape()[0], width = weight.count() / out, size = weight.shape()[3];
  const auto patches_of = [shape, size, width](const Tensor& images) {
    const int64_t pixels = ops::convolved(shape, size, 1).pixels();
    Tensor patches = Tensor::empty({pixels, width}, images.dtype(), images.device());
    ops::unfold(images, shape, size, patches);
    return patches;
  };
  const auto outputs = kept([&] {
    const Tensor patches = patches_of(x.value());
    Tensor product = Tensor::empty({patches.size(0), out}, patches.dtype(), patches.device());
    ops::matmul(patches, weight.value().reshape({out, width}), product,
                {.b = ops::Transpose::Yes, .bias = bias.value()});
    return std::vector{std::move(product)};
  });
  const Variable y(outputs[0], x.tape());
  if (x.tape()) {
    x.tape()->record(y, [=, value = x.value(), &weight, &bias, dx = x.gradient()](const Tensor& gradient) {
      if (!bias.is_frozen()) ops::bias_backward(gradient, bias.gradient());
      Tensor patches = patches_of(value);
      if (!weight.is_frozen()) {
        Tensor dweight = weight.gradient().reshape({out, width});
        ops::matmul(gradient, patches, dweight, {.a = ops::Transpose::Yes, .accumulate = true});
      }
      Tensor input_gradient = empty_like(value);
      ops::matmul(gradient, weight.value().reshape({out, width}), patches);  // of the patches, in their place
      ops::unfold_backward(patches, shape, size, input_gradient);
      dx->add(std::move(input_gradient));
    });
  }
  return y;
}

Variable max_pool(const Variable& x, const ops::ImageShape& shape, int64_t size) {
  const ops::ImageShape to = ops::pooled(shape, size);
  Tensor largest = Tensor::empty({to.pixels(), to.channels}, x.value().dtype(), x.value().device());
  Tensor chosen = Tensor::empty(largest.shape(), DType::Int32, x.value().device());
  ops::max_pool(x.value(), shape, size, largest, chosen);
  const Variable y(std::move(largest), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [shape, size, chosen, dx = x.gradient()](const Tensor& gradient) {
      Tensor input_gradient = Tensor::empty({shape.pixels(), shape.channels}, gradient.dtype(), gradient.device());
      ops::max_pool_backward(gradient, chosen, shape, size, input_gradient);
      dx->add(std::move(input_gradient));
    });
  }
  return y;
}

Variable channels_first(const Variable& x, const ops::ImageShape& shape) {
  const Tensor& pixels = x.value();
  Tensor rows =
      Tensor::empty({shape.images, shape.height * shape.width * shape.channels}, pixels.dtype(), pixels.device());
  ops::channels_first(pixels, shape, rows);
  const Variable y(std::move(rows), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [shape, dx = x.gradient()](const Tensor& gradient) {
      Tensor input_gradient = Tensor::empty({shape.pixels(), shape.channels}, gradient.dtype(), gradient.device());
      ops::channels_last(gradient, shape, input_gradient);
      dx->add(std::move(input_gradient));
    });
  }
  return y;
}

}  // namespace trainyard::autograd
