#include "ops/sum.h"

#include <catch2/catch.hpp>

#include <numeric>

#include "ops_support.h"

namespace trainyard {
using namespace test;

TEST_CASE("sum: adds in double, with the same bits for any number of threads", "[ops][bit_equal]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t count = GENERATE(0, 1, 7, 16384, 100003);
  const Tensor x = random_tensor({count}, dtype, 1, device);
  const std::vector<double> values = in_double(x);
  std::vector<double> seen;
  for_thread_counts([&] { seen.push_back(in_double(ops::sum(x))[0]); });
  CHECK(seen[0] == Approx(std::accumulate(values.begin(), values.end(), 0.0)).margin(1e-9));
  CHECK(seen[0] == seen[1]);
}

TEST_CASE("fill: every element is the value, rounded to the dtype", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  Tensor x = random_tensor({3, 20000}, DType::BFloat16, 1, device);
  ops::fill(x, 0.3F);
  CHECK(in_double(x) == std::vector<double>(60000, static_cast<double>(static_cast<float>(BFloat16(0.3F)))));
  Tensor ids = int_tensor({1});
  CHECK_THROWS_WITH(ops::fill(ids, 1), Catch::Contains("fill: x is int32"));
  CHECK_THROWS_WITH(ops::sum(ids), Catch::Contains("sum: x is int32"));
}

}  // namespace trainyard
