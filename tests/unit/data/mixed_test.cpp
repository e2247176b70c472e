// Several corpora with weights.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "data/loaders.h"
#include "data/mixture.h"

namespace trainyard::data {
namespace {

/// A corpus whose ids count from `first` on, so that a row tells where it was cut out.
TokenArray counting_from(int32_t first, int64_t size) {
  std::vector<int32_t> ids(static_cast<size_t>(size));
  std::iota(ids.begin(), ids.end(), first);
  return {std::move(ids), "from " + std::to_string(first), "fingerprint of " + std::to_string(first)};
}

/// Of 5 sequences 3 are of 3 windows below 1000, 2 of 11 windows from 1000 on.
std::unique_ptr<Loader> mix(int64_t rank, int64_t world, int64_t batch_size = 2) {
  return mixed_loader({{counting_from(0, 13), 3}, {counting_from(1000, 45), 2}},
                      {.place = {rank, world}, .sequence_length = 4, .batch_size = batch_size, .seed = 7});
}

/// First ids of the rows of `steps` global micro-batches in global order.
std::vector<int32_t> order_of(int64_t world, int64_t batch_size, int64_t steps, const nlohmann::json& state = {}) {
  std::vector<std::unique_ptr<Loader>> ranks;
  for (int64_t rank = 0; rank < world; ++rank) {
    ranks.push_back(mix(rank, world, batch_size));
    if (!state.is_null()) ranks.back()->load_state(state);
  }
  std::vector<int32_t> order;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Batch> batches;
    for (const auto& rank : ranks) batches.push_back(rank->next());
    for (int64_t row = 0; row < batch_size; ++row)
      for (const Batch& batch : batches) order.push_back(batch.input_ids.values<int32_t>()[static_cast<size_t>(row) * 4]);
  }
  return order;
}

}  // namespace

TEST_CASE("mixture: of any run of draws each source has its share, to less than one a source", "[data]") {
  for (const std::vector<int64_t>& weights :
       {std::vector<int64_t>{1}, {3, 2}, {1, 1, 1}, {70, 29, 1}, {1000, 1}, {5, 3, 3, 2, 1, 1}}) {
    const Mixture mixture(weights);
    const int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    std::vector<int64_t> drawn(weights.size());
    for (int64_t draw = 0; draw < 3 * total; ++draw) {
      const auto [source, index] = mixture.at(draw);
      CHECK(index == drawn.at(source)++);
      for (size_t each = 0; each < weights.size(); ++each) {
        const double share = static_cast<double>(weights[each] * (draw + 1)) / static_cast<double>(total);
        CHECK(std::abs(static_cast<double>(drawn[each]) - share) < static_cast<double>(weights.size()));
      }
    }
    for (size_t each = 0; each < weights.size(); ++each) CHECK(drawn[each] == 3 * weights[each]);
    CHECK(mixture.at(int64_t{1'000'000'000'000} * total) == Mixture::Draw{mixture.at(0).source, int64_t{1'000'000'000'000} * weights[mixture.at(0).source]});
  }
  CHECK_THROWS_AS(Mixture({1, 0}), std::invalid_argument);
  CHECK_THROWS_AS(Mixture({Mixture::kMostDraws, 1}), std::invalid_argument);
}

TEST_CASE("mix: the order is the same at any number of ranks, and each corpus has its own epochs", "[data]") {
  const std::vector<int32_t> order = order_of(1, 1, 60);
  CHECK(order_of(2, 2, 15) == order);
  CHECK(order_of(3, 4, 5) == order);
  std::map<int32_t, int64_t> seen;
  for (const int32_t first : order) ++seen[first];
  for (int32_t first = 0; first < 12; first += 4) CHECK(seen[first] == 12);  // 36 draws of 3 windows
  for (int32_t first = 1000; first < 1044; first += 4) {                     // 24 of 11
    CHECK(seen[first] >= 2);
    CHECK(seen[first] <= 3);
  }
  std::vector<int32_t> small;
  std::ranges::copy_if(order, std::back_inserter(small), [](int32_t first) { return first < 1000; });
  for (size_t epoch = 0; epoch < small.size(); epoch += 3) {
    std::vector<int32_t> pass(small.begin() + static_cast<ptrdiff_t>(epoch),
                              small.begin() + static_cast<ptrdiff_t>(epoch) + 3);
    std::ranges::sort(pass);
    CHECK(pass == std::vector<int32_t>{0, 4, 8});
  }
}

TEST_CASE("mix: it goes on at another number of ranks, and not with other corpora or weights", "[data]") {
  const auto loader = mix(0, 1, 7);
  loader->next();
  loader->skip();
  const nlohmann::json state = loader->state();
  const std::vector<int32_t> order = order_of(1, 1, 26);
  CHECK(order_of(2, 3, 2, state) == std::vector<int32_t>(order.begin() + 14, order.end()));
  CHECK(loader->sequences_per_epoch() == Loader::kEndless);
  const PackingOptions options{.place = {}, .sequence_length = 4, .batch_size = 2, .seed = 7};
  const auto heavier = mixed_loader({{counting_from(0, 13), 3}, {counting_from(1000, 45), 1}}, options);
  CHECK_THROWS_WITH(heavier->load_state(state), Catch::Contains("weights"));
  const auto other = mixed_loader({{counting_from(0, 13), 3}, {counting_from(2000, 45), 2}}, options);
  CHECK_THROWS_WITH(other->load_state(state), Catch::Contains("corpora"));
  CHECK_THROWS_AS(mixed_loader({{counting_from(0, 13), 3}, {counting_from(1000, 4), 2}}, options), InputError);
}

}  // namespace trainyard::data
