#pragma once

#include <map>

#include "cudnn_descriptors.h"

namespace host_cudnn {

/// Computes the operations of a graph one after another. `addresses`: of its tensors in memory, by their ids.
void run_graph(const Descriptor& graph, const std::map<int64_t, void*>& addresses);

}  // namespace host_cudnn
