#pragma once

#include "comm/communicator.h"
#include "metrics/trace.h"

namespace trainyard::train {

/// While it lives, the communicator's collectives become spans of `trace`, on a track of their own; who looked on
/// before still does. Made and ended while nothing is in flight.
class TraceCollectives {
 public:
  TraceCollectives(comm::Communicator& world, metrics::Trace& trace);
  ~TraceCollectives() { world_.on_collective(before_); }
  TraceCollectives(const TraceCollectives&) = delete;
  TraceCollectives& operator=(const TraceCollectives&) = delete;

 private:
  comm::Communicator& world_;
  comm::CollectiveObserver before_;
};

}  // namespace trainyard::train
