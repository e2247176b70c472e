#pragma once

#include "comm/communicator.h"

namespace trainyard::train {

/// While it lives, each collective leaves a line in the log: its name and label, bytes and milliseconds. What
/// NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL asks for. Made and ended while nothing is in flight.
class CollectiveLog {
 public:
  explicit CollectiveLog(comm::Communicator& world);
  ~CollectiveLog() { world_.on_collective(nullptr); }
  CollectiveLog(const CollectiveLog&) = delete;
  CollectiveLog& operator=(const CollectiveLog&) = delete;

 private:
  comm::Communicator& world_;
};

}  // namespace trainyard::train
