// Held-out shares: the same on any number of ranks, and never trained on.
#include "data/split.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/loaders.h"
#include "tensor/memory.h"

namespace trainyard::data {
namespace {

constexpr int64_t kLength = 4;

/// Each id is its place, so a target tells where it is from.
TokenArray counted(int64_t size) {
  std::vector<int32_t> ids(static_cast<size_t>(size));
  std::iota(ids.begin(), ids.end(), 0);
  return {std::move(ids), "corpus", "digest"};
}

/// All targets that `world` ranks see in `micro_batches`.
std::multiset<int32_t> targets(const TokenArray& tokens, int64_t world, int64_t micro_batches, Repeat repeat) {
  std::multiset<int32_t> seen;
  for (int64_t rank = 0; rank < world; ++rank) {
    const auto loader = packed_loader(tokens, {.place = {rank, world},
                                               .sequence_length = kLength,
                                               .batch_size = 2,
                                               .seed = 5,
                                               .shuffle = repeat == Repeat::Forever,
                                               .repeat = repeat});
    for (int64_t i = 0; i < micro_batches; ++i) {
      const Batch batch = loader->next();
      for (const int32_t id : batch.targets.values<int32_t>()) seen.insert(id);
    }
  }
  return seen;
}

TEST_CASE("split: the held-out targets are the same on any number of ranks, and none is ever trained on", "[data]") {
  const TokenArray corpus = counted(103);  // 25 windows
  const TokenArray held_out = side_of(corpus, kLength, {0.2, Side::HeldOut});
  std::multiset<int32_t> expected;
  for (int32_t id = 81; id <= 100; ++id) expected.insert(id);  // the last 5 windows' targets, each once
  const int64_t world = GENERATE(1, 2, 3, 4);
  CHECK(targets(held_out, world, 5, Repeat::Never) == expected);
  const auto trained = targets(side_of(corpus, kLength, {0.2, Side::Training}), world, 40, Repeat::Forever);
  CHECK(std::set<int32_t>(trained.begin(), trained.end()).size() == 80);
  CHECK(*trained.begin() == 1);
  CHECK(*trained.rbegin() == 80);
}

TEST_CASE("split: without a share both sides are all, and each side has a fingerprint of its own", "[data]") {
  const TokenArray corpus = counted(41);
  CHECK(side_of(corpus, kLength, {0, Side::HeldOut}).size() == 41);
  CHECK(side_of(corpus, kLength, {0, Side::HeldOut}).fingerprint() == "digest");
  const auto print = [&](double share, Side side) { return side_of(corpus, kLength, {share, side}).fingerprint(); };
  CHECK(std::set<std::string>{print(0.2, Side::Training), print(0.2, Side::HeldOut), print(0.3, Side::Training),
                              print(0.3, Side::HeldOut), "digest"}
            .size() == 5);
}

TEST_CASE("split: a share holds out one sequence at least, and never all", "[data]") {
  CHECK(side_of(counted(41), kLength, {0.001, Side::HeldOut}).size() == kLength + 1);
  CHECK_THROWS_AS(side_of(counted(5), kLength, {0.5, Side::Training}), InputError);
  CHECK_THROWS_WITH(side_of(counted(5), kLength, {0.5, Side::Training}),
                    "corpus: a validation.split of 0.5 holds out all of the 1 sequences that there are; give more data "
                    "or a smaller share");
}

TEST_CASE("split: images are cut with their labels", "[data]") {
  const auto images = std::make_shared<const Images>(
      Images{.count = 4, .height = 1, .width = 2, .pixels = "aabbccdd", .labels = "0123", .name = "i", .fingerprint = "f"});
  const auto training = side_of(images, {0.25, Side::Training}), held_out = side_of(images, {0.25, Side::HeldOut});
  CHECK(training->pixels == "aabbcc");
  CHECK(training->labels == "012");
  CHECK(held_out->count == 1);
  CHECK(held_out->pixels == "dd");
  CHECK(held_out->labels == "3");
  CHECK(held_out->fingerprint != training->fingerprint);
}

TEST_CASE("split: a side of images takes memory for its own pixels and not for all", "[data]") {
  constexpr int64_t kSide = 1 << 10, kCount = 64;  // MiB, as an image has one
  const auto images = std::make_shared<const Images>(Images{.count = kCount,
                                                            .height = kSide,
                                                            .width = kSide,
                                                            .pixels = std::string(kCount * kSide * kSide, 'x'),
                                                            .labels = std::string(kCount, '0'),
                                                            .name = "i",
                                                            .fingerprint = "f"});
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew
  const size_t before = peak_resident_bytes();
  const auto held_out = side_of(images, {1.0 / kCount, Side::HeldOut});
  CHECK(held_out->count == 1);
  CHECK(peak_resident_bytes() - before < size_t{kCount / 2} << 20);
}

}  // namespace
}  // namespace trainyard::data
