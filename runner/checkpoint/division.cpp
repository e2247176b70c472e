#include "checkpoint/division.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace trainyard::checkpoint {
namespace {

/// Deals tensors to replicas: the next one to whoever has the fewest bytes so far.
class Deal {
 public:
  Deal(size_t replicas, size_t mine) : bytes_(replicas), mine_(mine) {}

  void take_from(std::vector<Shard>& shards) {
    for (Shard& shard : shards) {
      const auto next = std::ranges::min_element(bytes_);
      *next += count_of(shard.global_shape);
      if (static_cast<size_t>(next - bytes_.begin()) != mine_) shard.local = {};
    }
  }

 private:
  std::vector<int64_t> bytes_;  // elements, which is as good: replicas hold tensors of the same types
  size_t mine_;
};

/// The shard without the rows that another rank writes.
Shard written_part(Shard shard) {
  const Rows written = std::exchange(shard.written, Shard::kAllRows);
  if (written == Shard::kAllRows || !shard.local.defined()) return shard;
  shard.row_offset += written.begin;
  shard.local = shard.local.rows(written.begin, written.count);
  return shard;
}

}  // namespace

Snapshot own_part(const Snapshot& snapshot, int rank, std::span<const int> members) {
  std::vector<int> replicas;
  for (const int each : snapshot.holders)
    if (std::ranges::find(members, each) != members.end()) replicas.push_back(each);
  Snapshot own = snapshot;
  for (auto* const shards : {&own.model, &own.optimizer})
    for (Shard& shard : *shards) shard = written_part(std::move(shard));
  if (replicas.empty()) return own;
  Deal deal(replicas.size(), static_cast<size_t>(std::ranges::find(replicas, rank) - replicas.begin()));
  deal.take_from(own.model);
  deal.take_from(own.optimizer);
  return own;
}

}  // namespace trainyard::checkpoint
