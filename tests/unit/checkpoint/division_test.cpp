#include "checkpoint/division.h"

#include <numeric>

#include "ranks.h"

namespace trainyard::checkpoint {
namespace {

Snapshot held_by(std::vector<int> holders) {
  Snapshot snapshot;
  snapshot.holders = std::move(holders);
  for (int i = 0; i < 30; ++i)
    snapshot.model.push_back(shard_of("layer." + std::to_string(i), {i % 3 == 0 ? 40 : 4, 2}, 0, 1, 1));
  return snapshot;
}

int64_t elements_of(const Snapshot& snapshot) {
  int64_t elements = 0;
  for (const Shard& shard : snapshot.model)
    if (shard.local.defined()) elements += shard.local.count();
  return elements;
}

}  // namespace

TEST_CASE("division: replicas write each tensor once and about as much as each other", "[checkpoint]") {
  const std::vector<int> members{0, 1, 2, 3};
  const Snapshot all = held_by(members);
  std::vector<int64_t> elements;
  for (const int rank : members) elements.push_back(elements_of(own_part(all, rank, members)));
  CHECK(std::accumulate(elements.begin(), elements.end(), int64_t{0}) == elements_of(all));
  CHECK(*std::ranges::min_element(elements) * 2 > *std::ranges::max_element(elements));
}

TEST_CASE("division: a rank without replicas in its folder writes all it holds, and a part taken twice is the same",
          "[checkpoint]") {
  const Snapshot all = held_by({0, 2});
  const std::vector<int> one_host{2, 3}, everyone{0, 1, 2, 3};
  CHECK(elements_of(own_part(all, 2, one_host)) == elements_of(all));
  CHECK(elements_of(own_part(held_by({}), 2, everyone)) == elements_of(all));
  const Snapshot once = own_part(all, 2, everyone);
  CHECK(elements_of(once) < elements_of(all));
  CHECK(elements_of(own_part(once, 2, everyone)) == elements_of(once));
}

}  // namespace trainyard::checkpoint
