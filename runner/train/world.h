#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/communicator.h"
#include "rendezvous/store.h"

namespace trainyard::train {

/// The ranks that work together, as a run sees them. What it refers to outlives the run.
struct World {
  comm::Communicator& comm;
  rendezvous::Store& store;
  int local_world = 1;     ///< ranks on this host
  int64_t generation = 0;  ///< of the gang
  std::string job;         ///< a digest of the job's token; "" without one
  bool verbose = false;    ///< a log line for each collective
  std::function<bool()> asked_to_stop = [] { return false; };

  [[nodiscard]] bool is_main() const { return comm.rank() == 0; }
};

}  // namespace trainyard::train
