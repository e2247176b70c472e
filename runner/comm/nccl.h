#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/seen.h"
#include "comm/settings.h"

// The one door to comm/cuda/: what is there is compiled only where the build has CUDA.
namespace trainyard::comm {

/// The world over NCCL for tensors on settings.device, and over `host` for those of the host; world > 1. Collective
/// over all ranks. Throws, on every rank alike, InputError where one lacks its device or NCCL, or their versions
/// differ, or two of a node have the same device; PeerError naming the ranks that did not come in time.
std::unique_ptr<Communicator> connect_nccl(const Settings& settings, std::unique_ptr<Communicator> host,
                                           std::shared_ptr<Seen> seen);

/// "2.28.9", or why this machine has none; "" in a build without CUDA.
std::string describe_nccl();

}  // namespace trainyard::comm
