#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "metrics/progress_post.h"
#include "rendezvous/store.h"
#include "tensor/device.h"

namespace trainyard::train {

/// The ranks that work together, as a run sees them. What it refers to outlives the run.
struct World {
  comm::Communicator& comm;
  rendezvous::Store& store;
  Device device = {};                                   ///< what this rank computes on
  int local_world = 1;                                  ///< ranks on this host
  int local_rank = 0;                                   ///< this one's number among them
  std::chrono::duration<double> meeting{0};             ///< from this rank's start until it could reach all others
  int64_t generation = 0;                               ///< of the gang
  std::string job;                                      ///< a digest of the job's token; "" without one
  bool may_have_saved = false;                          ///< an earlier start of this job: of a pod, or a restart
  bool logs_collectives = false;                        ///< a line for each of them
  bool in_pod = false;                                  ///< of a cluster: what is in no volume goes with it
  bool summarizes_collectives = false;                  ///< a line for those of a log line's steps
  std::optional<metrics::ProgressTarget> progress;      ///< where rank 0 tells the operator how far it is
  std::function<std::vector<int>()> silent_ranks = {};  ///< those that the master does not hear; any thread
  /// Takes what a run that is done has to say, as JSON, to where the end of its pod is told of. Rank 0 calls it.
  std::function<void(const std::string&)> leave_word = {};
  std::function<bool()> asked_to_stop = [] { return false; };

  [[nodiscard]] bool is_main() const { return comm.rank() == 0; }
};

}  // namespace trainyard::train
