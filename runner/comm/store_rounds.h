#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "comm/roster.h"
#include "rendezvous/store.h"

namespace trainyard::comm {

/// How the ranks of a group that is being connected tell one another what they need: in rounds, in each of which every
/// rank shows a value to all. One thread a rank.
class StoreRounds {
 public:
  /// `store` and `roster` outlive it. `prefix` of the keys in the store: no two groups share one.
  StoreRounds(rendezvous::Store& store, const Roster& roster, std::string prefix, std::chrono::milliseconds timeout)
      : store_(store), roster_(roster), prefix_(std::move(prefix)), timeout_(timeout) {}

  /// Values by rank. No two rounds share a name. Throws PeerError naming the ranks that are gone or did not come in
  /// time.
  std::vector<std::string> round(const std::string& name, const std::string& value);

 private:
  rendezvous::Store& store_;
  const Roster& roster_;
  const std::string prefix_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace trainyard::comm
