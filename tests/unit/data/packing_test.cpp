#include <catch2/catch.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "data/loaders.h"

namespace trainyard::data {
namespace {

/// A corpus whose ids are their own positions, so that a row tells where it was cut out.
TokenArray counting(int64_t size) {
  std::vector<int32_t> ids(static_cast<size_t>(size));
  std::iota(ids.begin(), ids.end(), 0);
  return {std::move(ids), "corpus.txt", "fingerprint"};
}

PackingOptions options(int64_t rank, int64_t world, int64_t batch_size = 2) {
  return {.place = {rank, world}, .sequence_length = 4, .batch_size = batch_size, .seed = 11};
}

/// First ids of the rows of `micro_batches` global micro-batches, in global order: row g from rank g % world.
std::vector<int32_t> global_order(std::vector<std::unique_ptr<Loader>>& ranks, int64_t micro_batches) {
  std::vector<int32_t> order;
  for (int64_t k = 0; k < micro_batches; ++k) {
    std::vector<Batch> batches;
    for (const auto& rank : ranks) batches.push_back(rank->next());
    for (int64_t row = 0; row < batches[0].input_ids.size(0); ++row)
      for (const Batch& batch : batches)
        order.push_back(batch.input_ids.values<int32_t>()[static_cast<size_t>(row * batch.input_ids.size(1))]);
  }
  return order;
}

std::vector<std::unique_ptr<Loader>> loaders(const TokenArray& tokens, int64_t world, int64_t batch_size = 2) {
  std::vector<std::unique_ptr<Loader>> ranks;
  for (int64_t rank = 0; rank < world; ++rank) ranks.push_back(packed_loader(tokens, options(rank, world, batch_size)));
  return ranks;
}

}  // namespace

TEST_CASE("packing: the target of each position is the next id, and windows meet without a gap", "[data]") {
  auto unshuffled = options(0, 1, 3);
  unshuffled.shuffle = false;
  const Batch batch = packed_loader(counting(14), unshuffled)->next();
  CHECK(batch.input_ids.shape() == Shape{3, 4});
  const auto inputs = batch.input_ids.values<int32_t>(), targets = batch.targets.values<int32_t>();
  for (int32_t i = 0; i < 12; ++i) {
    CHECK(inputs[static_cast<size_t>(i)] == i);
    CHECK(targets[static_cast<size_t>(i)] == i + 1);
  }
  CHECK(batch.valid_tokens == 12);
  CHECK_FALSE(batch.position_ids.defined());
}

TEST_CASE("packing: without repeating, the last micro-batch has what is left, on each rank", "[data]") {
  const TokenArray tokens = counting(4 * 11 + 1);  // 11 windows
  for (const int64_t world : {1, 2, 3, 4}) {
    std::vector<int32_t> first_ids;
    for (int64_t rank = 0; rank < world; ++rank) {
      auto once = options(rank, world, 3);
      once.shuffle = false;
      once.repeat = Repeat::Never;
      const auto loader = packed_loader(tokens, once);
      for (int64_t left = 11; left > 0; left -= loader->sequences_per_step()) {
        const Batch batch = loader->next();
        CHECK(batch.valid_tokens == batch.input_ids.count());
        for (int64_t row = 0; row < batch.input_ids.size(0); ++row)
          first_ids.push_back(batch.input_ids.values<int32_t>()[static_cast<size_t>(row * 4)]);
      }
      CHECK(loader->next().input_ids.size(0) == 0);
    }
    std::ranges::sort(first_ids);
    CHECK(first_ids == std::vector<int32_t>{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40});
  }
}

TEST_CASE("packing: the union over 1, 2, 3 and 4 ranks is one sequence, and an epoch has every window once", "[data]") {
  const TokenArray tokens = counting(4 * 24 + 1);  // 24 windows
  auto alone = loaders(tokens, 1);
  const auto expected = global_order(alone, 24);  // 48 sequences: two epochs
  for (const int64_t world : {2, 3, 4}) {
    auto ranks = loaders(tokens, world);
    CHECK(global_order(ranks, 24 / world) == expected);
  }
  std::vector<int32_t> first(expected.begin(), expected.begin() + 24), second(expected.begin() + 24, expected.end());
  CHECK(first != second);
  std::ranges::sort(first);
  std::ranges::sort(second);
  CHECK(first == second);
  CHECK(std::ranges::adjacent_find(first) == first.end());
}

TEST_CASE("packing: a micro-batch across the end of an epoch loses nothing and repeats nothing", "[data]") {
  auto ranks = loaders(counting(4 * 7 + 1), 2, 3);  // 7 windows, 6 rows a micro-batch
  auto order = global_order(ranks, 7);              // 42 = 6 epochs
  CHECK(ranks[0]->sequences_seen() == 42);
  CHECK(ranks[0]->sequences_per_epoch() == 7);
  for (int epoch = 0; epoch < 6; ++epoch) {
    std::vector<int32_t> once(order.begin() + epoch * 7, order.begin() + (epoch + 1) * 7);
    std::ranges::sort(once);
    CHECK(once == std::vector<int32_t>{0, 4, 8, 12, 16, 20, 24});
  }
}

TEST_CASE("packing: a run goes on at another world size where it stopped", "[data]") {
  const TokenArray tokens = counting(4 * 50 + 1);
  auto alone = loaders(tokens, 1);
  const auto expected = global_order(alone, 12);
  auto before = loaders(tokens, 4);
  auto order = global_order(before, 1);  // 8 sequences
  auto after = loaders(tokens, 2);
  for (const auto& rank : after) rank->load_state(before[3]->state());
  const auto rest = global_order(after, 4);  // 16 more
  order.insert(order.end(), rest.begin(), rest.end());
  CHECK(order == expected);
}

TEST_CASE("packing: a state of other data is refused by name", "[data]") {
  const auto saved = packed_loader(counting(100), options(0, 1))->state();
  auto other = options(0, 1);
  other.seed = 12;
  CHECK_THROWS_WITH(packed_loader(counting(100), other)->load_state(saved),
                    Catch::Contains("corpus.txt: seed is 12 and was 11"));
  CHECK_THROWS_AS(packed_loader(counting(100), other)->load_state(nlohmann::json::object()), InputError);
  auto broken = saved;
  broken["sequences_seen"] = -1;
  CHECK_THROWS_AS(packed_loader(counting(100), options(0, 1))->load_state(broken), InputError);
}

TEST_CASE("packing: a corpus shorter than one sequence is refused, one that just fits is not", "[data]") {
  CHECK_THROWS_WITH(packed_loader(counting(4), options(0, 1)),
                    Catch::Contains("corpus.txt: 4 tokens, but one sequence takes 5"));
  CHECK_THROWS_AS(packed_loader(counting(0), options(0, 1)), InputError);
  CHECK(packed_loader(counting(5), options(0, 1))->sequences_per_epoch() == 1);
}

TEST_CASE("check_ids: names corpus, place, id and the end of the vocabulary", "[data]") {
  CHECK_NOTHROW(check_ids(counting(10'000), 10'000));
  CHECK_THROWS_WITH(check_ids(counting(10'000), 9'000),
                    Catch::Contains("corpus.txt: token 9000 has id 9000") && Catch::Contains("ends at 8999"));
}

}  // namespace trainyard::data
