#include "ops/relative_bias.h"

#include <catch2/catch.hpp>

#include "ops_support.h"

namespace trainyard {
using namespace test;

TEST_CASE("relative_bias: looks each distance's bucket up for each head, and backward adds to the table", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const auto buckets = GENERATE(std::vector<int32_t>{}, std::vector<int32_t>{2, 0, 0, 3, 2, 2, 1});
  const auto span = static_cast<int64_t>(buckets.size());
  constexpr int64_t kHeads = 3;
  const Tensor table = random_tensor({5, kHeads}, dtype, 1, device);
  const Tensor dbias = random_tensor({kHeads, span}, DType::Float32, 2, device);
  Tensor dtable = random_tensor({5, kHeads}, dtype, 3, device);
  std::vector<double> bias, expected = in_double(dtable);
  for (int64_t head = 0; head < kHeads; ++head)
    for (int64_t d = 0; d < span; ++d) {
      const auto at = static_cast<size_t>(buckets[static_cast<size_t>(d)] * kHeads + head);
      bias.push_back(in_double(table)[at]);
      expected[at] += in_double(dbias)[static_cast<size_t>(head * span + d)];
    }
  Tensor out = Tensor::empty({kHeads, span}, DType::Float32, device);
  ops::relative_bias(int_tensor(buckets, device), table, out);
  CHECK(relative_error(out, bias) == 0);
  ops::relative_bias_backward(dbias, int_tensor(buckets, device), dtable);
  CHECK(relative_error(dtable, expected) < tolerance(dtype));
}

TEST_CASE("relative_bias: a bucket outside the table is named", "[ops]") {
  Tensor bias = Tensor::empty({3, 2}, DType::Float32);
  CHECK_THROWS_WITH(ops::relative_bias(int_tensor({1, 5}), Tensor::zeros({5, 3}, DType::Float32), bias),
                    "relative_bias: buckets[1] is 5, outside 0 to 4");
}

}  // namespace trainyard
