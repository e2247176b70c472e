#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/backend.h"

// The sentences of PeerError, the same for every backend.
namespace trainyard::comm {

/// "rank 5 (llama-worker-4)", "ranks 1, 2"; `hosts` by rank, or empty where all are threads of one process.
std::string names_of(std::span<const int> ranks, std::span<const std::string> hosts);

/// rank 3: all_gather of layers.17 waited 600 s for rank 5 (llama-worker-4); see that pod's log, or raise comm.timeout
std::string timeout_message(int rank, const Call& call, const std::string& missing);

/// rank 3: all_gather of layers.17 lost rank 5 (llama-worker-4): its process ended; see that pod's log
std::string lost_message(int rank, const Call& call, const std::string& lost, const std::string& how);

}  // namespace trainyard::comm
