#include "ops/embedding.h"

#include <catch2/catch.hpp>

#include "ops_support.h"

namespace trainyard {
using namespace test;

TEST_CASE("embedding: looks rows up, and backward adds each token's gradient to its row", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes())), table_dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t hidden = GENERATE(1, 61, 512);
  const auto ids =
      GENERATE(std::vector<int32_t>{}, std::vector<int32_t>{4}, std::vector<int32_t>{0, 6, 3, 3, 3, 0, 6, 1});
  const auto tokens = static_cast<int64_t>(ids.size());
  const Tensor table = random_tensor({7, hidden}, dtype, 1, device),
               dout = random_tensor({tokens, hidden}, dtype, 2, device);
  const std::vector<double> rows = in_double(table), gradients = in_double(dout);
  std::vector<double> looked_up, expected = in_double(random_tensor({7, hidden}, table_dtype, 3));
  for (size_t token = 0; token < ids.size(); ++token)
    for (int64_t i = 0; i < hidden; ++i) {
      looked_up.push_back(rows[ids[token] * hidden + i]);
      expected[ids[token] * hidden + i] += gradients[static_cast<int64_t>(token) * hidden + i];
    }
  for_thread_counts([&] {
    Tensor out = Tensor::empty({tokens, hidden}, dtype, device);
    ops::embedding(int_tensor(ids, device), table, out);
    CHECK(relative_error(out, looked_up) == 0);
    Tensor dtable = random_tensor({7, hidden}, table_dtype, 3, device);
    ops::embedding_backward(dout, int_tensor(ids, device), dtable);
    CHECK(relative_error(dtable, expected) < tolerance(table_dtype));
  });
}

TEST_CASE("embedding_backward: many tokens on few rows give the same bits for any number of threads", "[ops][bit_equal]") {
  const Device device = GENERATE(from_range(devices()));
  constexpr int64_t kTokens = 5000, kWidth = 300, kRows = 9;
  std::vector<int32_t> ids(kTokens);  // of which some come late, and not in every 256
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i % 5 + i / 1300);
  ids.back() = 8;
  const Tensor dout = random_tensor({kTokens, kWidth}, DType::Float32, 1, device);
  const std::vector<double> gradients = in_double(dout);
  std::vector<double> expected(kRows * kWidth);
  for (size_t at = 0; at < gradients.size(); ++at)
    expected[static_cast<size_t>(ids[at / kWidth] * kWidth) + at % kWidth] += gradients[at];
  std::vector<Tensor> seen;
  for_thread_counts([&] {
    seen.push_back(Tensor::zeros({kRows, kWidth}, DType::Float32, device));
    ops::embedding_backward(dout, int_tensor(ids, device), seen.back());
  });
  CHECK(same_bits(seen[0], seen[1]));
  CHECK(relative_error(seen[0], expected) < tolerance(DType::Float32));
}

TEST_CASE("embedding: of parts of a table each gives its rows, and zeros for the others", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const int64_t width = GENERATE(5, 64);
  const Tensor ids = int_tensor({0, 6, 3, 4, 3, 6, 1}, device),
               table = random_tensor({7, width}, DType::Float32, 1, device),
               dout = random_tensor({7, width}, DType::Float32, 2, device);
  Tensor whole = Tensor::empty({7, width}, DType::Float32, device),
         dwhole = Tensor::zeros({7, width}, DType::Float32, device);
  ops::embedding(ids, table, whole);
  ops::embedding_backward(dout, ids, dwhole);
  std::vector<double> sum(static_cast<size_t>(7 * width));
  for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 3}, {3, 3}, {6, 1}, {7, 0}}) {
    const ops::TablePart part{first, 7};
    Tensor out = random_tensor({7, width}, DType::Float32, 3, device),
           dpart = Tensor::zeros({rows, width}, DType::Float32, device);
    ops::embedding(ids, table.rows(first, rows), out, part);
    const std::vector<double> of_part = in_double(out);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += of_part[i];
    ops::embedding_backward(dout, ids, dpart, part);
    CHECK(same_bits(dpart, dwhole.rows(first, rows)));
  }
  CHECK(relative_error(whole, sum) == 0);
  Tensor out = Tensor::empty({1, width}, DType::Float32);
  CHECK_THROWS_WITH(ops::embedding(int_tensor({9}), on_device(table, {}).rows(0, 3), out, {0, 9}),
                    "embedding: ids[0] is 9, outside 0 to 8");
}

TEST_CASE("embedding_backward: the padding row gets nothing, in whichever part of the table it is", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const int64_t width = GENERATE(5, 64), padding = GENERATE(0, 3, 6);
  const Tensor ids = int_tensor({0, 6, 3, 4, 3, 6, 1}, device),
               dout = random_tensor({7, width}, DType::Float32, 2, device);
  const auto gradient_of = [&](const ops::TablePart& part, int64_t rows, std::optional<int64_t> padding_idx) {
    Tensor dtable = random_tensor({rows, width}, DType::Float32, 3, device);  // something has gathered before
    ops::embedding_backward(dout, ids, dtable, part, padding_idx);
    return dtable;
  };
  for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 7}, {0, 3}, {3, 3}, {6, 1}}) {
    const ops::TablePart part{first, 7};
    const Tensor before = random_tensor({rows, width}, DType::Float32, 3, device),
                 all = gradient_of(part, rows, std::nullopt), seen = gradient_of(part, rows, padding);
    for (int64_t row = 0; row < rows; ++row) {
      CAPTURE(first, row);
      CHECK(same_bits(seen.rows(row, 1), (first + row == padding ? before : all).rows(row, 1)));
    }
  }
  Tensor dtable = Tensor::zeros({7, width}, DType::Float32, device);
  CHECK_THROWS_WITH(ops::embedding_backward(dout, ids, dtable, {}, 7),
                    "embedding_backward: padding_idx is 7, outside 0 to 6");
  CHECK_THROWS_WITH(ops::embedding_backward(dout, ids, dtable, {}, -1),
                    "embedding_backward: padding_idx is -1, outside 0 to 6");
}

TEST_CASE("embedding: an id outside the table is named with its place", "[ops]") {
  const Tensor table = Tensor::zeros({7, 4}, DType::Float32);
  Tensor out = Tensor::empty({2, 4}, DType::Float32);
  CHECK_THROWS_WITH(ops::embedding(int_tensor({3, 7}), table, out), "embedding: ids[1] is 7, outside 0 to 6");
  CHECK_THROWS_WITH(ops::embedding(int_tensor({-1, 3}), table, out), "embedding: ids[0] is -1, outside 0 to 6");
}

}  // namespace trainyard
