#include <catch2/catch.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/loaders.h"

namespace trainyard::data {
namespace {

RandomTokenOptions random_options(int64_t rank, int64_t world, uint64_t seed = 3) {
  return {.place = {rank, world}, .sequence_length = 50, .batch_size = 6 / world, .seed = seed, .vocab_size = 11};
}

std::vector<int32_t> ids_of_row(const Tensor& ids, int64_t index) {
  const Tensor own = ids.rows(index, 1);
  const auto values = own.values<int32_t>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("random tokens: a row follows from seed and number alone, and its targets are its next ids", "[data]") {
  const Batch alone = random_tokens(random_options(0, 1))->next();
  CHECK(alone.valid_tokens == 300);
  for (const int64_t world : {2, 3})
    for (int64_t rank = 0; rank < world; ++rank) {
      const Batch part = random_tokens(random_options(rank, world))->next();
      for (int64_t i = 0; i < 6 / world; ++i)
        CHECK(ids_of_row(part.input_ids, i) == ids_of_row(alone.input_ids, rank + i * world));
    }
  const auto ids = ids_of_row(alone.input_ids, 4), targets = ids_of_row(alone.targets, 4);
  CHECK(std::equal(ids.begin() + 1, ids.end(), targets.begin()));
  CHECK(ids_of_row(random_tokens(random_options(0, 1, 4))->next().input_ids, 0) != ids_of_row(alone.input_ids, 0));
}

TEST_CASE("random tokens: every id comes about as often, in the first steps and later", "[data]") {
  const auto loader = random_tokens(random_options(0, 1));
  std::vector<int> counts(11);
  for (int step = 0; step < 40; ++step) {
    const Batch batch = loader->next();
    for (const int32_t id : batch.input_ids.values<int32_t>()) ++counts.at(static_cast<size_t>(id));
  }
  for (const int count : counts) CHECK(count == Approx(12000 / 11.0).epsilon(0.15));  // five standard deviations
}

TEST_CASE("random tokens: a run goes on where it was", "[data]") {
  const auto loader = random_tokens(random_options(0, 1)), resumed = random_tokens(random_options(0, 1));
  loader->next();
  resumed->load_state(loader->state());
  CHECK(ids_of_row(resumed->next().input_ids, 5) == ids_of_row(loader->next().input_ids, 5));
  CHECK(loader->sequences_per_epoch() == Loader::kEndless);
  CHECK_THROWS_WITH(random_tokens(random_options(0, 1, 9))->load_state(loader->state()),
                    Catch::Contains("seed is 9 and was 3"));
}

}  // namespace trainyard::data
