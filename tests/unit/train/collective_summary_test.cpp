#include <catch2/catch.hpp>

#include <chrono>

#include "run/collective_summary.h"
#include "support/ranks.h"

namespace trainyard::train {
namespace {

using trainyard::test::run_ranks;

}  // namespace

TEST_CASE("CollectiveSummary: the first step's sizes, then a sum and the memory for each line", "[train]") {
  const auto said = run_ranks(2, [](comm::Communicator& world) {
    CollectiveSummary summary(world);
    const auto step = [&] {
      Tensor mine = Tensor::zeros({4}, DType::Float32), all = Tensor::zeros({8}, DType::Float32);
      world.all_gather(mine, all).wait();
      world.all_gather(mine, all).wait();
      world.reduce_scatter(all, mine).wait();
    };
    std::vector<std::string> lines;
    step();
    lines.push_back(summary.first_step(1));
    step();
    lines.push_back(summary.first_step(2));
    lines.push_back(summary.at_line(2, 3 << 20));
    return lines;
  });
  for (const auto& lines : said) {
    CHECK_THAT(lines[0], Catch::StartsWith("NCCL_DEBUG=INFO: up to step 1: 2 ranks, ") &&
                             Catch::Contains("all-gather 2 x 32 bytes") &&
                             Catch::Contains("reduce-scatter 1 x 32 bytes"));
    CHECK(lines[1].empty());
    CHECK_THAT(lines[2], Catch::StartsWith("NCCL_DEBUG=INFO: step 2: memory 3.00 MiB resident; in 2 steps: ") &&
                             Catch::Contains("all-gather 4 times, 128 bytes, ") &&
                             Catch::Contains("reduce-scatter 2 times, 64 bytes, "));
  }
}

TEST_CASE("CollectiveSummary: one rank is said to be one, and who looked on before still does", "[train]") {
  const auto said = run_ranks(1, [](comm::Communicator& world) {
    int seen = 0;
    world.on_collective([&seen](const comm::CollectiveRecord&) { ++seen; });
    std::string line;
    {
      CollectiveSummary summary(world);
      Tensor value = Tensor::zeros({1}, DType::Float32);
      world.all_reduce(value).wait();
      line = summary.first_step(1);
    }
    world.on_collective(nullptr);
    return std::pair(seen, line);
  });
  CHECK(said[0].first == 1);
  CHECK_THAT(said[0].second, Catch::Contains("one rank, so no all-gather and no reduce-scatter travels"));
}

TEST_CASE("CollectiveSummary: of many sizes the largest eight are told", "[train]") {
  CollectiveCounts::Sizes sizes;
  for (size_t bytes = 1; bytes <= 20; ++bytes) sizes[{"all-gather", bytes}] = 1;
  const std::string text = text_of(sizes);
  CHECK_THAT(text, Catch::StartsWith("all-gather 1 x 20 bytes") && Catch::EndsWith("1 x 13 bytes, 12 smaller sizes"));
}

}  // namespace trainyard::train
