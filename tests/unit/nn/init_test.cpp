#include "nn/init.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainyard::nn {
namespace {

std::vector<float> rows_of(const autograd::Parameter& parameter, uint64_t seed, int64_t begin, int64_t rows) {
  std::vector<float> out(static_cast<size_t>(rows * parameter.count() / parameter.shape()[0]));
  initial_rows(parameter, seed, begin, rows, out);
  return out;
}

}  // namespace

TEST_CASE("initial_rows: any split of the rows gives the same model", "[nn]") {
  const autograd::Parameter parameter("layer.weight", {10, 33}, {});
  const auto whole = rows_of(parameter, 7, 0, 10);
  const auto first = rows_of(parameter, 7, 0, 4), rest = rows_of(parameter, 7, 4, 6);
  CHECK(std::equal(first.begin(), first.end(), whole.begin()));
  CHECK(std::equal(rest.begin(), rest.end(), whole.begin() + 4 * 33));
  CHECK(rows_of(parameter, 7, 10, 0).empty());
}

TEST_CASE("initial_rows: normal with the parameter's deviation, and other for another name or seed", "[nn]") {
  const autograd::Parameter parameter("layer.weight", {300, 301}, {.scale = 0.5F}),
      other("layer.other", {300, 301}, {.scale = 0.5F});
  const auto values = rows_of(parameter, 7, 0, 300);
  double sum = 0, squares = 0;
  for (const float value : values)
    sum += static_cast<double>(value), squares += static_cast<double>(value) * static_cast<double>(value);
  const auto count = static_cast<double>(values.size());
  CHECK(std::abs(sum / count) < 0.5 * 4 / std::sqrt(count));  // four standard errors
  CHECK(std::sqrt(squares / count) == Approx(0.5).epsilon(0.01));
  CHECK(static_cast<double>(std::ranges::count_if(values, [](float v) { return std::abs(v) < 0.5F; })) / count ==
        Approx(0.6827).epsilon(0.01));
  CHECK(values != rows_of(parameter, 8, 0, 300));
  CHECK(values != rows_of(other, 7, 0, 300));
}

TEST_CASE("initial_rows: uniform within the bound, to both sides of zero alike", "[nn]") {
  const autograd::Parameter parameter("fc.weight", {200, 101}, {autograd::Init::Kind::Uniform, 0.25F});
  const auto values = rows_of(parameter, 7, 0, 200);
  double sum = 0, squares = 0;
  for (const float value : values)
    sum += static_cast<double>(value), squares += static_cast<double>(value) * static_cast<double>(value);
  const auto count = static_cast<double>(values.size());
  CHECK(std::ranges::all_of(values, [](float v) { return std::abs(v) <= 0.25F; }));
  CHECK(std::abs(sum / count) < 4 * 0.25 / std::sqrt(3 * count));  // four standard errors
  CHECK(squares / count == Approx(0.25 * 0.25 / 3).epsilon(0.02));
  CHECK(rows_of(parameter, 7, 150, 50) == std::vector<float>(values.begin() + 150 * 101, values.end()));
}

TEST_CASE("initial_rows: the row that is to be zero is, whoever draws it, and no other changes", "[nn]") {
  const autograd::Parameter plain("embed.weight", {7, 33}, {}), padded("embed.weight", {7, 33}, {.zero_row = 4});
  auto expected = rows_of(plain, 7, 0, 7);
  std::fill_n(expected.begin() + 4 * 33, 33, 0.0F);
  CHECK(rows_of(padded, 7, 0, 7) == expected);
  CHECK(rows_of(padded, 7, 3, 2) == std::vector<float>(expected.begin() + 3 * 33, expected.begin() + 5 * 33));
}

TEST_CASE("initial_rows: norms begin at one, biases at zero", "[nn]") {
  const autograd::Parameter norm("norm.weight", {5}, autograd::kOnes);
  CHECK(rows_of(norm, 7, 1, 3) == std::vector<float>(3, 1.0F));
  const autograd::Parameter bias("proj.bias", {5}, autograd::kZeros);
  CHECK(rows_of(bias, 7, 1, 3) == std::vector<float>(3, 0.0F));
}

}  // namespace trainyard::nn
