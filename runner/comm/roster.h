#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/backend.h"
#include "common/mutex.h"

namespace trainyard::comm {

/// Where ranks stand in a mesh: "shard 1, tensor 0". A world and its splits share it, and so do threads.
class RankPlaces {
 public:
  /// `places`: by number in the world.
  void set(std::vector<std::string> places);
  [[nodiscard]] std::string of(int number) const;  ///< "" where nobody has said

 private:
  mutable Mutex mutex_;
  std::vector<std::string> places_ GUARDED_BY(mutex_);
};

/// Who the ranks of a communicator are, for the sentences of PeerError, which are the same for every backend. The ranks
/// of a split are named by their number in the world.
struct Roster {
  int rank = 0;                    ///< this one's place in the lists
  std::vector<int> numbers;        ///< by rank: number in the world
  std::vector<std::string> hosts;  ///< by rank: host or pod; empty where all are threads of one process

  std::shared_ptr<RankPlaces> places = std::make_shared<RankPlaces>();

  [[nodiscard]] int world() const { return static_cast<int>(numbers.size()); }
  [[nodiscard]] Roster of(std::span<const int> members) const;

  /// "rank 5 (llama-worker-4)", "ranks 1, 2", and with places "rank 5 (llama-worker-4; shard 1, tensor 1)".
  [[nodiscard]] std::string names(std::span<const int> ranks) const;

  /// rank 3: all_gather of layers.17 waited 600 s for rank 5 (llama-worker-4); see that pod's log, or raise
  /// comm.timeout
  [[nodiscard]] std::string waited(const Call& call, std::span<const int> missing) const;
  /// rank 3: all_gather of layers.17 lost rank 5 (llama-worker-4): its process ended; see that pod's log
  [[nodiscard]] std::string lost(const Call& call, std::span<const int> gone, const std::string& how) const;
  /// rank 3: all_gather of layers.17 was abandoned: this rank aborted
  [[nodiscard]] std::string abandoned(const Call& call) const;
};

/// All of a world of `world` in one process.
Roster roster_of_threads(int rank, int world);

}  // namespace trainyard::comm
