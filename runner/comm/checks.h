#pragma once

#include "tensor/tensor.h"

// What a collective asks of its tensors. Every function throws std::invalid_argument with both sides' values.
namespace trainyard::comm {

/// Host memory that is there.
void check_usable(const char* collective, const Tensor& tensor);
/// all_gather: `whole` has the rows of `world` times `part`; the two may overlap only if `part` is slice `rank` of it.
/// reduce_scatter: the same with the roles of input and output exchanged.
void check_part_and_whole(const char* collective, const Tensor& part, const Tensor& whole, int rank, int world);
/// all_to_all: equal shapes whose rows split into `world`, and no overlap.
void check_exchange(const Tensor& input, const Tensor& output, int world);
void check_root(int root, int world);

}  // namespace trainyard::comm
