#include "ops/dropout.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "ops_support.h"
#include "tensor/convert.h"

namespace trainyard {
using namespace test;
namespace {

Tensor sequences(const std::vector<int64_t>& numbers) {
  return Tensor::from<int64_t>(numbers, {static_cast<int64_t>(numbers.size())});
}

Tensor ones(int64_t rows, int64_t width, DType dtype = DType::Float32) {
  const std::vector<float> values(static_cast<size_t>(rows * width), 1.0F);
  return converted(Tensor::from<float>(values, {rows, width}), dtype);
}

Tensor dropped(const Tensor& x, const ops::Dropout& dropout) {
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  ops::Dropout there = dropout;
  there.sequences = on_device(dropout.sequences, x.device());
  ops::dropout(x, there, y);
  return y;
}

}  // namespace

TEST_CASE("dropout: drops the asked share and keeps the mean, along rows, columns and neighbours", "[ops]") {
  const float rate = GENERATE(0.1F, 0.5F);
  const int64_t tokens = 300, width = 1000;
  const std::vector<double> y = in_double(dropped(ones(2 * tokens, width), {rate, 7, sequences({3, 4})}));
  double kept = 0, both = 0, wrong = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    wrong += y[i] == 0 || std::abs(y[i] * (1 - static_cast<double>(rate)) - 1) < 1e-6 ? 0 : 1;
    kept += y[i] != 0 ? 1 : 0;
    both += i + 1 < y.size() && y[i] != 0 && y[i + 1] != 0 ? 1 : 0;
  }
  CHECK(wrong == 0);
  const double keep = 1 - static_cast<double>(rate), count = static_cast<double>(y.size());
  // Five standard errors of 600,000 draws.
  CHECK(kept / count == Approx(keep).margin(5 * std::sqrt(keep * (1 - keep) / count)));
  CHECK(both / count == Approx(keep * keep).margin(5 * std::sqrt(keep * keep / count)));
  std::vector<double> by_column(width);
  for (size_t i = 0; i < y.size(); ++i) by_column[i % width] += y[i] != 0 ? 1.0 / 600 : 0;
  for (const double share : by_column) CHECK(share == Approx(keep).margin(5 * std::sqrt(keep * (1 - keep) / 600)));
}

TEST_CASE("dropout: the mask follows from seed, row and token, not from the batch, the threads or the device",
          "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t width = GENERATE(500, 512);
  const Tensor x = on_device(ones(3 * 40, width, dtype), device);
  std::vector<Tensor> seen;
  for_thread_counts([&] { seen.push_back(dropped(x, {0.1F, 7, sequences({5, 6, 1LL << 40})})); });
  CHECK(same_bits(seen[0], seen[1]));
  CHECK(same_bits(seen[0], dropped(on_device(x, {}), {0.1F, 7, sequences({5, 6, 1LL << 40})})));
  const Tensor alone = dropped(ones(40, width, dtype), {0.1F, 7, sequences({6})});
  CHECK(in_double(alone) == in_double(seen[0].rows(40, 40)));
  CHECK(in_double(alone) != in_double(seen[0].rows(0, 40)));
  CHECK(in_double(alone) != in_double(dropped(ones(40, width, dtype), {0.1F, 8, sequences({6})})));
  const Tensor shorter = dropped(ones(30, width, dtype), {0.1F, 7, sequences({6})});  // less padding, the same mask
  CHECK(in_double(shorter) == in_double(alone.rows(0, 30)));
}

TEST_CASE("dropout: a part of the tokens or of the columns has its part of the mask", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const ops::Dropout all{0.3F, 7, sequences({5, 9})};
  const Tensor whole = dropped(ones(2 * 10, 64), all);
  ops::Dropout of_tokens = all;
  of_tokens.tokens = 10, of_tokens.first_token = 7;
  const Tensor some = dropped(on_device(ones(6, 64), device), of_tokens);  // of both rows
  CHECK(in_double(some) == in_double(whole.rows(7, 6)));
  of_tokens.first_token = 16;  // the last ones, and padding behind them
  CHECK(in_double(dropped(on_device(ones(6, 64), device), of_tokens).rows(0, 4)) == in_double(whole.rows(16, 4)));
  ops::Dropout of_columns = all;
  of_columns.first_column = 13;
  const std::vector<double> seen = in_double(dropped(on_device(ones(2 * 10, 20), device), of_columns)),
                            expected = in_double(whole);
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == expected[i / 20 * 64 + 13 + i % 20]);
}

TEST_CASE("dropout: rate 0 changes nothing, and what does not fit is refused", "[ops]") {
  const Tensor x = random_tensor({6, 5}, DType::Float32, 1);
  CHECK(same_bits(dropped(x, {0, 7, sequences({1, 2})}), x));
  CHECK(dropped(Tensor::empty({0, 5}, DType::Float32), {0.5F, 7, sequences({})}).count() == 0);
  CHECK_THROWS_WITH(dropped(x, {1, 7, sequences({1, 2})}), Catch::Contains("a dropout rate of 1"));
  CHECK_THROWS_WITH(dropped(x, {0.5F, 7, sequences({1, 2, 3, 4})}), Catch::Contains("6 tokens are not 4 rows"));
}

}  // namespace trainyard
