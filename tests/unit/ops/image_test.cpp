#include "ops/image.h"

#include <catch2/catch.hpp>

#include <limits>

#include "ops_support.h"

namespace trainyard {
using namespace test;
using ops::ImageShape;
namespace {

using Values = std::vector<double>;

Tensor random_images(const ImageShape& shape, DType dtype, uint32_t seed, Device device) {
  return random_tensor({shape.pixels(), shape.channels}, dtype, seed, device);
}

struct Case {
  ImageShape shape;
  int64_t size;
};

Case some_case() {
  return GENERATE(Case{{0, 5, 4, 3}, 2}, Case{{1, 1, 1, 1}, 1}, Case{{2, 3, 3, 1}, 3}, Case{{3, 9, 7, 5}, 3},
                  Case{{2, 28, 28, 1}, 3}, Case{{2, 13, 12, 4}, 2});
}

size_t pixel_at(const ImageShape& s, int64_t image, int64_t row, int64_t column, int64_t channel) {
  return static_cast<size_t>(((image * s.height + row) * s.width + column) * s.channels + channel);
}

/// Calls body(element of a patch tensor, element of the images) for every one.
template <typename Body>
void each_patch_element(const Case& c, const Body& body) {
  const ImageShape out = ops::convolved(c.shape, c.size, 1);
  size_t at = 0;
  for (int64_t image = 0; image < out.images; ++image)
    for (int64_t row = 0; row < out.height; ++row)
      for (int64_t column = 0; column < out.width; ++column)
        for (int64_t channel = 0; channel < c.shape.channels; ++channel)
          for (int64_t i = 0; i < c.size; ++i)
            for (int64_t j = 0; j < c.size; ++j) body(at++, pixel_at(c.shape, image, row + i, column + j, channel));
}

}  // namespace

TEST_CASE("unfold: each output pixel's patch by channel, row and column, and backward adds each pixel's patches",
          "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Case c = some_case();
  const Tensor x = random_images(c.shape, dtype, 1, device);
  const int64_t rows = ops::convolved(c.shape, c.size, 1).pixels(), width = c.shape.channels * c.size * c.size;
  const Tensor dpatches = random_tensor({rows, width}, dtype, 2, device);
  const Values in = in_double(x), dpatches_values = in_double(dpatches);
  Values expected(static_cast<size_t>(rows * width)), dx_expected(in.size());
  each_patch_element(c, [&](size_t element, size_t pixel) {
    expected[element] = in[pixel];
    dx_expected[pixel] += dpatches_values[element];
  });
  for_thread_counts([&] {
    Tensor patches = Tensor::empty({rows, width}, dtype, device), dx = random_images(c.shape, dtype, 3, device);
    ops::unfold(x, c.shape, c.size, patches);
    CHECK(in_double(patches) == expected);
    ops::unfold_backward(dpatches, c.shape, c.size, dx);
    CHECK(relative_error(dx, dx_expected) < tolerance(dtype));
  });
}

TEST_CASE("max_pool: the largest of each window, and backward to where it was", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Case c = some_case();
  const ImageShape out = ops::pooled(c.shape, c.size);
  const Tensor x = random_images(c.shape, dtype, 1, device), dy = random_images(out, dtype, 2, device);
  const Values in = in_double(x), dy_values = in_double(dy);
  Values expected(dy_values.size()), dx_expected(in.size());
  for (int64_t image = 0; image < out.images; ++image)
    for (int64_t row = 0; row < out.height; ++row)
      for (int64_t column = 0; column < out.width; ++column)
        for (int64_t channel = 0; channel < out.channels; ++channel) {
          size_t best = pixel_at(c.shape, image, row * c.size, column * c.size, channel);
          for (int64_t i = 0; i < c.size; ++i)
            for (int64_t j = 0; j < c.size; ++j) {
              const size_t at = pixel_at(c.shape, image, row * c.size + i, column * c.size + j, channel);
              if (in[at] > in[best]) best = at;
            }
          const size_t at = pixel_at(out, image, row, column, channel);
          expected[at] = in[best];
          dx_expected[best] += dy_values[at];
        }
  for_thread_counts([&] {
    Tensor y = random_images(out, dtype, 3, device), chosen = Tensor::empty(y.shape(), DType::Int32, device),
           dx = random_images(c.shape, dtype, 4, device);
    ops::max_pool(x, c.shape, c.size, y, chosen);
    CHECK(in_double(y) == expected);
    ops::max_pool_backward(dy, chosen, c.shape, c.size, dx);
    CHECK(in_double(dx) == dx_expected);
  });
}

TEST_CASE("max_pool: of equals the first is chosen, and a NaN is larger than all", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const ImageShape shape{1, 2, 4, 1};
  Tensor here = Tensor::zeros({8, 1}, DType::Float32), y = Tensor::empty({2, 1}, DType::Float32, device),
         chosen = Tensor::empty({2, 1}, DType::Int32, device);
  here.data<float>()[6] = std::numeric_limits<float>::quiet_NaN();
  ops::max_pool(on_device(here, device), shape, 2, y, chosen);
  const Tensor seen = on_device(chosen, {});
  CHECK(seen.data<int32_t>()[0] == 0);
  CHECK(seen.data<int32_t>()[1] == 6);
}

TEST_CASE("channels_first: each image by channels, and channels_last brings it back", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const ImageShape shape{3, 4, 5, 6};
  const Tensor x = random_images(shape, dtype, 1, device);
  Tensor y = Tensor::empty({3, 120}, dtype, device), back = Tensor::empty(x.shape(), dtype, device);
  ops::channels_first(x, shape, y);
  const Values in = in_double(x), flat = in_double(y);
  CHECK(flat[1 * 120 + 2 * 20 + 3 * 5 + 4] == in[pixel_at(shape, 1, 3, 4, 2)]);
  CHECK(flat[2 * 120 + 5 * 20] == in[pixel_at(shape, 2, 0, 0, 5)]);
  ops::channels_last(y, shape, back);
  CHECK(same_bits(x, back));
}

TEST_CASE("unfold: a kernel larger than the image and other shapes are refused", "[ops]") {
  Tensor x = random_tensor({4, 1}, DType::Float32, 1), patches = random_tensor({1, 9}, DType::Float32, 2);
  CHECK_THROWS_WITH(ops::unfold(x, {1, 2, 2, 1}, 3, patches),
                    "unfold: 1 images of 2 x 2 with 1 channels, but windows of 3 x 3");
  CHECK_THROWS_WITH(ops::unfold(x, {1, 2, 2, 1}, 2, patches),
                    "unfold: patches is float32 [1, 9], but float32 [1, 4] is needed");
}

}  // namespace trainyard
