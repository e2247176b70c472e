#include "ops/matmul.h"

#include <catch2/catch.hpp>

#include "ops/cpu_info.h"
#include "ops_support.h"
#include "tensor/convert.h"

namespace trainyard {
using namespace test;
namespace {

struct Product {
  int64_t m, k, n;
};

Shape stored(int64_t rows, int64_t columns, ops::Transpose transpose) {
  return transpose == ops::Transpose::Yes ? Shape{columns, rows} : Shape{rows, columns};
}

std::vector<double> reference(const Tensor& a, const Tensor& b, const Product& size, const ops::MatmulOptions& options,
                              std::vector<double> c) {
  c.resize(static_cast<size_t>(size.m * size.n));
  const std::vector<double> left = in_double(a), right = in_double(b);
  const std::vector<double> bias = options.bias.defined() ? in_double(options.bias) : std::vector<double>(size.n);
  for (int64_t i = 0; i < size.m; ++i)
    for (int64_t j = 0; j < size.n; ++j) {
      double sum = bias[j] + (options.accumulate ? c[i * size.n + j] : 0);
      for (int64_t p = 0; p < size.k; ++p)
        sum += left[options.a == ops::Transpose::Yes ? p * size.m + i : i * size.k + p] *
               right[options.b == ops::Transpose::Yes ? j * size.k + p : p * size.n + j];
      c[i * size.n + j] = sum;
    }
  return c;
}

}  // namespace

TEST_CASE("matmul: equals the double-precision product for every transposition, size and dtype, with a bias or not",
          "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes())), out_dtype = GENERATE(from_range(floating_dtypes()));
  const Product size = GENERATE(Product{1, 1, 1}, Product{3, 0, 2}, Product{0, 4, 5}, Product{7, 5, 3},
                                Product{65, 33, 129}, Product{1, 64, 257}, Product{130, 300, 48});
  ops::MatmulOptions options{.a = GENERATE(ops::Transpose::No, ops::Transpose::Yes),
                             .b = GENERATE(ops::Transpose::No, ops::Transpose::Yes),
                             .accumulate = GENERATE(false, true)};
  const Tensor a = random_tensor(stored(size.m, size.k, options.a), dtype, 1, device);
  const Tensor b = random_tensor(stored(size.k, size.n, options.b), dtype, 2, device);
  if (GENERATE(false, true)) options.bias = random_tensor({size.n}, out_dtype, 4, device);
  Tensor c = random_tensor({size.m, size.n}, out_dtype, 3, device);
  const std::vector<double> expected = reference(a, b, size, options, in_double(c));
  ops::matmul(a, b, c, options);
  CHECK(relative_error(c, expected) < tolerance(out_dtype));
}

TEST_CASE("matmul: bfloat16 with sums longer, and with more columns, than are multiplied at once", "[ops]") {
  const Product size = GENERATE(Product{70, 1100, 40}, Product{33, 8300, 17}, Product{20, 530, 1100},
                                Product{1, 64, 2100}, Product{48, 2048, 300});
  const DType out_dtype = GENERATE(DType::Float32, DType::BFloat16);
  const ops::MatmulOptions options{.a = GENERATE(ops::Transpose::No, ops::Transpose::Yes),
                                   .b = GENERATE(ops::Transpose::No, ops::Transpose::Yes),
                                   .accumulate = GENERATE(false, true)};
  const Tensor a = random_tensor(stored(size.m, size.k, options.a), DType::BFloat16, 1);
  const Tensor b = random_tensor(stored(size.k, size.n, options.b), DType::BFloat16, 2);
  const auto before = [&] { return random_tensor({size.m, size.n}, out_dtype, 3); };
  const std::vector<double> expected = reference(a, b, size, options, in_double(before()));
  Tensor of_one_count;
  for_thread_counts([&] {
    Tensor c = before();
    ops::matmul(a, b, c, options);
    CHECK(relative_error(c, expected) < tolerance(out_dtype));
    if (of_one_count.defined() && ops::multiplies_bfloat16_in_tiles()) CHECK(same_bits(c, of_one_count));
    of_one_count = c;
  });
}

TEST_CASE("matmul: takes tensors that begin anywhere in a storage", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t first = GENERATE(0, 1, 2, 4);
  const Tensor a = random_tensor({9, 3}, dtype, 1, device).rows(first, 5),
               b = random_tensor({9, 7}, dtype, 2, device).rows(first, 3);
  Tensor c = Tensor::empty({9, 7}, dtype, device).rows(first, 5);
  ops::matmul(a, b, c);
  CHECK(relative_error(c, reference(a, b, {5, 3, 7}, {}, {})) < tolerance(dtype));
}

TEST_CASE("matmul: the bias is the call's own, wherever it begins", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Tensor a = random_tensor({5, 8}, dtype, 1, device), b = random_tensor({8, 16}, dtype, 2, device),
               biases = random_tensor({40}, dtype, 3, device);
  Tensor c = Tensor::empty({5, 16}, dtype, device);
  for (const int64_t first : {0, 16, 8, 1, 3, 24}) {  // of which the first two, and the last two, share a plan
    CAPTURE(first);
    const ops::MatmulOptions options{.bias = biases.rows(first, 16)};
    ops::matmul(a, b, c, options);
    CHECK(relative_error(c, reference(a, b, {5, 8, 16}, options, {})) < tolerance(dtype));
  }
  ops::matmul(a, b, c);
  CHECK(relative_error(c, reference(a, b, {5, 8, 16}, {}, {})) < tolerance(dtype));
}

TEST_CASE("matmul: a bias is added to the sums before these are rounded", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const auto in_bfloat16 = [&](const std::vector<float>& values, const Shape& shape) {
    return on_device(converted(Tensor::from<float>(values, shape), DType::BFloat16), device);
  };
  // The sum 1 + 2^-8 lies half-way between 1 and 1 + 2^-7, and would be rounded to 1; with 2^-8 more it is the latter.
  const float part = 0x1p-8F;
  Tensor c = Tensor::empty({1, 1}, DType::BFloat16, device);
  ops::matmul(in_bfloat16({1, part}, {1, 2}), in_bfloat16({1, 1}, {2, 1}), c, {.bias = in_bfloat16({part}, {1})});
  CHECK(in_double(c).front() == 1 + 0x1p-7);
}

TEST_CASE("matmul: takes more shapes than any device remembers", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const Tensor all = random_tensor({700, 2}, DType::Float32, 1, device),
               b = random_tensor({2, 3}, DType::Float32, 2, device);
  double worst = 0;
  for (int64_t rows = 1; rows <= all.size(0); ++rows) {
    const Tensor a = all.rows(0, rows);
    Tensor c = Tensor::empty({rows, 3}, DType::Float32, device);
    ops::matmul(a, b, c);
    worst = std::max(worst, relative_error(c, reference(a, b, {rows, 2, 3}, {}, {})));
  }
  CHECK(worst < tolerance(DType::Float32));
}

TEST_CASE("matmul: repeated runs give the same bits", "[ops][bit_equal]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  for_thread_counts([&] {
    const Tensor a = random_tensor({150, 200}, dtype, 1, device), b = random_tensor({200, 90}, dtype, 2, device);
    Tensor first = Tensor::empty({150, 90}, DType::Float32, device),
           second = Tensor::empty(first.shape(), DType::Float32, device);
    ops::matmul(a, b, first);
    ops::matmul(a, b, second);
    CHECK(same_bits(first, second));
  });
}

TEST_CASE("matmul: shapes and dtypes that do not fit are refused, with both values", "[ops]") {
  Tensor c = Tensor::empty({4, 64}, DType::Float32);
  const Tensor a = Tensor::zeros({4, 96}, DType::Float32), b = Tensor::zeros({128, 64}, DType::Float32);
  CHECK_THROWS_WITH(ops::matmul(a, b, c), "matmul: [4, 96] x [128, 64]: inner sizes 96 and 128 differ");
  CHECK_THROWS_WITH(ops::matmul(a, Tensor::zeros({96, 64}, DType::BFloat16), c),
                    Catch::Contains("b is bfloat16 [96, 64]"));
  CHECK_THROWS_WITH(ops::matmul(a, Tensor::zeros({96, 63}, DType::Float32), c),
                    "matmul: c is float32 [4, 64], but float32 [4, 63] is needed");
  CHECK_THROWS_WITH(
      ops::matmul(a, Tensor::zeros({96, 64}, DType::Float32), c, {.bias = Tensor::zeros({4}, DType::Float32)}),
      "matmul: bias is float32 [4], but float32 [64] is needed");
  CHECK_THROWS_WITH(ops::matmul(Tensor::zeros({4}, DType::Float32), b, c),
                    Catch::Contains("a is [4], but 2 dimensions"));
}

TEST_CASE("measure_matmul_peak: a rate that any machine of this century exceeds", "[ops]") {
  CHECK(ops::measure_matmul_peak(GENERATE(DType::Float32, DType::BFloat16)) > 1e8);
}

}  // namespace trainyard
