#include "shard/layout.h"

#include <catch2/catch.hpp>

#include <numeric>

namespace trainyard::shard {
namespace {

Tensor counted(int64_t count) {
  Tensor tensor = Tensor::empty({count}, DType::Float32);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 1.0F);
  return tensor;
}

}  // namespace

TEST_CASE("chunk_of: as torch.chunk splits, the last ranks short or empty", "[shard]") {
  struct Row {
    int64_t rows;
    int world;
    std::vector<Rows> expected;
  };
  const auto row = GENERATE(values<Row>({
      {5, 3, {{0, 2}, {2, 2}, {4, 1}}},
      {1024, 3, {{0, 342}, {342, 342}, {684, 340}}},
      {5, 4, {{0, 2}, {2, 2}, {4, 1}, {5, 0}}},
      {1, 3, {{0, 1}, {1, 0}, {1, 0}}},
      {0, 2, {{0, 0}, {0, 0}}},
      {6, 1, {{0, 6}}},
  }));
  for (int rank = 0; rank < row.world; ++rank)
    CHECK(chunk_of(row.rows, row.world, rank) == row.expected[static_cast<size_t>(rank)]);
}

TEST_CASE("copy_in and copy_out: whole parameters go to padded shards and come back", "[shard]") {
  const int world = GENERATE(1, 2, 3, 4, 8);
  autograd::Parameter matrix("matrix", {5, 3}, {}), vector("vector", {7}, {}), single("single", {1, 2}, {});
  autograd::Parameter* const parameters[] = {&matrix, &vector, &single};
  const Layout layout(parameters, world, 0);
  const Tensor whole = counted(layout.unsharded_elements);

  Tensor shards = counted(world * layout.shard_elements);  // garbage where padding must come
  copy_in(layout, whole, shards);
  double sum = 0;
  for (const float value : shards.values<float>()) sum += static_cast<double>(value);
  CHECK(sum == 24 * 25 / 2);  // padding is zero

  Tensor back = Tensor::zeros({layout.unsharded_elements}, DType::Float32);
  copy_out(layout, shards, back);
  CHECK(std::ranges::equal(back.values<float>(), whole.values<float>()));
}

TEST_CASE("Layout: a rank's shard begins with its rows of each parameter", "[shard]") {
  autograd::Parameter matrix("matrix", {5, 3}, {}), vector("vector", {4}, {});
  autograd::Parameter* const parameters[] = {&matrix, &vector};
  const Layout layout(parameters, 3, 2);
  CHECK(layout.shard_elements == 2 * 3 + 2);
  CHECK(layout.pieces[0].local == Rows{4, 1});
  CHECK(layout.pieces[1].local == Rows{4, 0});
  CHECK(layout.pieces[1].shard_offset == 6);
}

}  // namespace trainyard::shard
