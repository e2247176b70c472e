#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

// What every communicator must do, whatever carries it: one body, which each rank runs on its communicator and which
// returns what was wrong (Catch2's macros are not for several threads, nor processes). Expected values come from a
// formula of (rank, index) and plain loops in rank order.
namespace trainyard::comm::conformance {

struct Promises {
  bool rank_order = true;  ///< float sums have the bits of the rank-order loop; else a tolerance
  Device device = {};      ///< where the tensors lie; cuda: the rank's own device
};

/// One line for each thing that was not as it should be; empty: all well.
std::vector<std::string> check_all(Communicator& comm, Promises promises);

}  // namespace trainyard::comm::conformance
