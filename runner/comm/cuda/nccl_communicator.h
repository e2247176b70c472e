#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/cuda/nccl_memory.h"
#include "comm/cuda/nccl_watch.h"

namespace trainyard::comm {

/// Where the tensors of collectives lie.
struct NcclPlace {
  Device device;
  NcclMemory* user_buffers = nullptr;  ///< those among them that are registered; null: none are
};

/// The communicator of a group whose ncclComm_t is ready, and which `watch` knows. Its collectives of a tensor of
/// `place.device` go to NCCL, on a stream of its own; those of host memory to `host`, a communicator of the same ranks.
std::unique_ptr<Communicator> make_nccl_communicator(std::shared_ptr<NcclWatch> watch, std::shared_ptr<NcclGroup> group,
                                                     std::unique_ptr<Communicator> host, NcclPlace place);

}  // namespace trainyard::comm
