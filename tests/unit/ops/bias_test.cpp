#include "ops/bias.h"

#include <catch2/catch.hpp>

#include "ops_support.h"

namespace trainyard {
using namespace test;
namespace {

struct Size {
  int64_t rows, width;
};

}  // namespace

TEST_CASE("add_bias: adds to every row, and backward sums the rows, on top of what is there", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes())), bias_dtype = GENERATE(from_range(floating_dtypes()));
  const Size size = GENERATE(Size{0, 5}, Size{1, 1}, Size{3, 61}, Size{70, 512}, Size{3000, 20}, Size{5, 40000});
  const Tensor before = random_tensor({size.rows, size.width}, dtype, 1, device);
  const Tensor bias = random_tensor({size.width}, dtype, 2, device),
               dbias_before = random_tensor({size.width}, bias_dtype, 3, device);
  std::vector<double> sum = in_double(before), dbias_sum = in_double(dbias_before);
  const std::vector<double> added = in_double(bias);
  for (size_t i = 0; i < sum.size(); ++i) {
    const size_t column = i % static_cast<size_t>(size.width);
    dbias_sum[column] += sum[i];
    sum[i] += added[column];
  }
  for_thread_counts([&] {
    Tensor y = Tensor::empty(before.shape(), dtype, device), dbias = Tensor::empty({size.width}, bias_dtype, device);
    copy(before, y);
    copy(dbias_before, dbias);
    ops::add_bias(y, bias);
    CHECK(relative_error(y, sum) < tolerance(dtype));
    ops::bias_backward(before, dbias);
    CHECK(relative_error(dbias, dbias_sum) < tolerance(bias_dtype));
  });
}

TEST_CASE("bias_backward: any number of threads gives the same bits", "[ops][bit_equal]") {
  const Tensor dy = random_tensor({5000, 64}, DType::Float32, 1);
  std::vector<Tensor> seen;
  for_thread_counts([&] {
    seen.push_back(Tensor::zeros({64}, DType::Float32));
    ops::bias_backward(dy, seen.back());
  });
  CHECK(same_bits(seen[0], seen[1]));
}

TEST_CASE("add_bias: another width or dtype is refused", "[ops]") {
  Tensor y = random_tensor({2, 30}, DType::Float32, 1), narrow = random_tensor({29}, DType::Float32, 2);
  CHECK_THROWS_WITH(ops::add_bias(y, narrow), "add_bias: bias is float32 [29], but float32 [30] is needed");
  CHECK_THROWS_WITH(ops::add_bias(y, random_tensor({30}, DType::BFloat16, 2)), Catch::Contains("bfloat16 [30]"));
  CHECK_THROWS_WITH(ops::bias_backward(y, narrow), "bias_backward: dbias is float32 [29], but float32 [30] is needed");
}

}  // namespace trainyard
