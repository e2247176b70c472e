#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "rendezvous/store.h"

namespace trainyard::rendezvous {

/// Where all ranks of a world come once, each in its own time, unless one of them is asked to stop before that: either
/// all go on or all end. Of one thread of each rank.
class Barrier {
 public:
  /// `name`: of this barrier and no other in the store, which must outlive it. `asked_to_stop`: whether this rank is.
  Barrier(Store& store, std::string name, int rank, int world, std::function<bool()> asked_to_stop);

  /// For a rank on its way: whether it or another has been asked to stop, so that nobody is to come any more. Looks at
  /// the store twice a second.
  [[nodiscard]] bool is_called_off();

  /// Who did not come within the time-out, or that it is called off.
  struct Met {
    std::vector<int> missing = {};
    bool called_off = false;
  };
  /// Says in the store that this rank is here, and waits until all are.
  /// Throws PeerError naming the ranks that are gone, as soon as one is.
  [[nodiscard]] Met come(std::chrono::milliseconds timeout);

 private:
  [[nodiscard]] std::string key_of(int rank) const;
  /// Writes how it ends, where nobody has yet.
  void end_as(const std::string& word);

  Store& store_;
  const std::string name_, end_;
  const int rank_, world_;
  const std::function<bool()> asked_to_stop_;
  std::chrono::steady_clock::time_point looked_{};
  bool called_off_ = false;
};

}  // namespace trainyard::rendezvous
