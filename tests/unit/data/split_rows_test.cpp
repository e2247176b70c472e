#include "data/split_rows.h"

#include <catch2/catch.hpp>

#include <set>

namespace trainyard::data {
namespace {

Batch batch_of(int64_t rows, int64_t tokens) {
  Batch batch{.input_ids = Tensor::empty({rows, tokens}, DType::Int32),
              .targets = Tensor::empty({rows, tokens}, DType::Int32)};
  for (int64_t i = 0; i < rows * tokens; ++i) {
    batch.input_ids.values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i);
    batch.targets.values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i % 3 == 0 ? kIgnored : i + 1);
  }
  batch.valid_tokens = count_valid(batch.targets);
  for (int64_t row = 0; row < rows; ++row) batch.sequences.push_back(100 + row);
  return batch;
}

std::vector<int32_t> values_of(const Tensor& tensor) {
  return {tensor.values<int32_t>().begin(), tensor.values<int32_t>().end()};
}

}  // namespace

TEST_CASE("split rows: head_tail gives each rank an early and a late piece", "[data]") {
  const RowParts parts(2, RowParts::Balance::HeadTail);
  const Batch batch = batch_of(2, 8), first = part_of(batch, parts, 0), second = part_of(batch, parts, 1);
  CHECK(first.input_ids.shape() == Shape{4, 2});
  CHECK(values_of(first.input_ids) == std::vector<int32_t>{0, 1, 8, 9, 6, 7, 14, 15});
  CHECK(values_of(second.input_ids) == std::vector<int32_t>{2, 3, 10, 11, 4, 5, 12, 13});
  CHECK(values_of(first.position_ids) == std::vector<int32_t>{0, 1, 0, 1, 6, 7, 6, 7});
  CHECK(first.sequences == std::vector<int64_t>{100, 101, 100, 101});
  CHECK(first.whole.tokens == 8);
  CHECK(!first.whole.document_starts.defined());
  CHECK(first.valid_tokens + second.valid_tokens == batch.valid_tokens);
}

TEST_CASE("split rows: every token is on one rank, and padding has no target", "[data]") {
  const auto balance = GENERATE(RowParts::Balance::HeadTail, RowParts::Balance::None);
  const int ranks = GENERATE(1, 2, 3, 5);
  const int64_t tokens = GENERATE(1, 4, 7, 30);
  CAPTURE(ranks, tokens);
  const RowParts parts(ranks, balance);
  const Batch batch = batch_of(3, tokens);
  std::multiset<int32_t> targets;
  int64_t valid = 0, all = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Batch part = part_of(batch, parts, rank);
    CHECK(part.targets.size(1) * parts.pieces() * ranks == parts.padded(tokens));
    valid += part.valid_tokens, all += part.targets.count();
    for (const int32_t target : values_of(part.targets))
      if (target != kIgnored) targets.insert(target);
  }
  std::multiset<int32_t> expected;
  for (const int32_t target : values_of(batch.targets))
    if (target != kIgnored) expected.insert(target);
  CHECK(targets == expected);
  CHECK(valid == batch.valid_tokens);
  CHECK(all == 3 * parts.padded(tokens));
}

TEST_CASE("split rows: documents are those of the whole rows", "[data]") {
  Batch batch = batch_of(1, 6);
  batch.position_ids = Tensor::from<int32_t>(std::vector<int32_t>{0, 1, 2, 3, 0, 1}, {1, 6});
  const RowParts parts(2, RowParts::Balance::HeadTail);
  const Batch first = part_of(batch, parts, 0), second = part_of(batch, parts, 1);
  CHECK(values_of(first.whole.document_starts) == std::vector<int32_t>{0, 0, 0, 0, 4, 4, 4, 4});  // two are padding
  CHECK(values_of(first.whole.own_document_starts) == std::vector<int32_t>{0, 0, 4, 4});
  CHECK(values_of(second.whole.own_document_starts) == std::vector<int32_t>{0, 0, 4, 4});
  CHECK(values_of(first.position_ids) == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(values_of(second.position_ids) == std::vector<int32_t>{2, 3, 0, 1});
}

TEST_CASE("split rows: what is none of a decoder's tokens is refused", "[data]") {
  Batch batch = batch_of(2, 4);
  batch.input_lengths = Tensor::from<int32_t>(std::vector<int32_t>{4, 4}, {2});
  CHECK_THROWS_AS(part_of(batch, RowParts(2, RowParts::Balance::None), 0), std::invalid_argument);
}

}  // namespace trainyard::data
