#include "shard/mesh.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstdint>

#include "base/error.h"
#include "comm/in_process.h"
#include "support/ranks.h"

namespace trainyard::shard {
namespace {

/// The ranks of each dimension's communicator that `of` is in, as bits.
std::vector<int32_t> members(const MeshSize& size, int of) {
  return test::run_ranks(size.world(), [&](comm::Communicator& world) {
    const Mesh mesh(world, size);
    std::vector<int32_t> seen;
    for (const Dimension dimension : kDimensions) {
      Tensor bits = Tensor::from<double>(std::array{static_cast<double>(1 << world.rank())}, {1});
      mesh.of(dimension).all_reduce(bits).wait();
      seen.push_back(static_cast<int32_t>(bits.values<double>()[0]));
    }
    return seen;
  })[static_cast<size_t>(of)];
}

}  // namespace

TEST_CASE("mesh: neighbours in number share a tensor dimension, then a context, then shards, then copies", "[shard]") {
  // In the order of kDimensions; a shard dimension has the contexts in it.
  CHECK(members({.replicate = 2, .shard = 2, .tensor = 2}, 5) ==
        std::vector<int32_t>{1 << 1 | 1 << 5, 1 << 5 | 1 << 7, 1 << 5, 1 << 4 | 1 << 5});
  CHECK(members({.shard = 2, .context = 2, .tensor = 2}, 5) ==
        std::vector<int32_t>{1 << 5, 1 << 1 | 1 << 3 | 1 << 5 | 1 << 7, 1 << 5 | 1 << 7, 1 << 4 | 1 << 5});
  CHECK(members({.replicate = 2, .context = 2, .replicates_context = true, .tensor = 2}, 0) ==
        std::vector<int32_t>{1 | 1 << 2 | 1 << 4 | 1 << 6, 1, 1 | 1 << 2, 1 | 1 << 1});
}

TEST_CASE("mesh: a rank that is lost in any dimension is named with its place", "[shard]") {
  const MeshSize size{.replicate = 2, .shard = 2, .tensor = 2};
  const Dimension dimension = GENERATE(Dimension::Replicate, Dimension::Shard, Dimension::Tensor);
  const auto told = test::run_threads(size.world(),
                                      [ranks = comm::make_in_process(size.world(), std::chrono::seconds(20)), &size,
                                       dimension](int rank) mutable -> std::string {
                                        const auto world = std::move(ranks[static_cast<size_t>(rank)]);
                                        const Mesh mesh(*world, size);
                                        if (rank == 5) return "";  // its communicators go with it
                                        try {
                                          Tensor one = Tensor::zeros({1}, DType::Float32);
                                          mesh.of(dimension).all_reduce(one, comm::ReduceOp::Sum, "layers.3").wait();
                                        } catch (const PeerError& error) {
                                          return error.what();
                                        }
                                        return "";
                                      });
  int named = 0;
  for (const std::string& message : told) {
    if (message.empty()) continue;
    ++named;
    CHECK_THAT(message, Catch::Contains("all_reduce of layers.3 (" + std::string(name_of(dimension)) + ")") &&
                            Catch::Contains("rank 5 (replicate 1, shard 0, tensor 1)"));
  }
  CHECK(named == 1);
}

}  // namespace trainyard::shard
