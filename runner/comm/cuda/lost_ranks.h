#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/cuda/nccl_group.h"
#include "rendezvous/store.h"

namespace trainyard::comm {

/// Which ranks are lost, as the rendezvous store knows it: NCCL does not say. Ranks that are stuck tell there how far
/// they have come, who gives a rank up leaves word of it, and the master counts heartbeats.
/// One thread at a time. Every function throws PeerError where the master is lost.
class LostRanks {
 public:
  /// `world` names the ranks; `prefix` is of the keys. `store` outlives it.
  LostRanks(rendezvous::Store& store, Roster world, const std::string& prefix)
      : store_(store), world_(std::move(world)), word_key_(prefix + "/lost") {}

  [[nodiscard]] const Roster& world() const { return world_; }

  /// This rank is stuck in the group's operation `number`.
  void tell_stuck(const NcclGroup& group, uint64_t number);
  /// The ranks of the group that are not; all others where everybody is.
  [[nodiscard]] std::vector<int> not_stuck(const NcclGroup& group, uint64_t number);

  /// "rank 0: all_gather of layers.17 lost rank 2 (pod-2): …", where the master or another rank has noticed one.
  [[nodiscard]] std::optional<std::string> sentence(const Call& call);
  /// The others shall know that this rank has given up for `ranks`, by number in the world. The first word stands.
  void leave_word(const std::vector<int>& ranks);

 private:
  rendezvous::Store& store_;
  const Roster world_;
  const std::string word_key_;
};

}  // namespace trainyard::comm
