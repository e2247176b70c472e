#pragma once

#include "cudnn_descriptors.h"

// What the real library refuses when a descriptor is finalized. All throw Refusal.
namespace host_cudnn {

void check_tensor(const Descriptor& from);
void check_operation(const Descriptor& operation);
/// Of a graph: its operations are finalized, and it adds up in memory what the real library would.
void check_operations(const Descriptor& graph);

/// Bytes: a matrix of each head, as the real library's deterministic backward has one; 0 of forward and of the other
/// backward.
int64_t workspace_of(const Descriptor& graph);

}  // namespace host_cudnn
