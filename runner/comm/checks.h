#pragma once

#include <span>

#include "tensor/tensor.h"

// What a collective asks of its tensors. Every function throws std::invalid_argument with both sides' values.
namespace trainyard::comm {

/// This rank among those of a communicator, and whose memory is moved there.
struct Seat {
  int rank = 0, world = 1;
  Device device = {};
};

/// Memory of that device that is there.
void check_usable(const char* collective, const Tensor& tensor, Device device);
/// all_gather: `whole` has the rows of `seat.world` times `part`; the two may overlap only if `part` is slice
/// `seat.rank` of it. reduce_scatter: the same with the roles of input and output exchanged.
void check_part_and_whole(const char* collective, const Tensor& part, const Tensor& whole, const Seat& seat);
/// The same of several pairs, at least one. Returns the bytes of the whole sides.
size_t check_parts_and_wholes(const char* collective, std::span<const Tensor> parts, std::span<const Tensor> wholes,
                              const Seat& seat);
/// all_to_all: equal shapes whose rows split into `seat.world`, and no overlap.
void check_exchange(const Tensor& input, const Tensor& output, const Seat& seat);
/// shift: equal shapes, and no overlap.
void check_shift(const Tensor& input, const Tensor& output, const Seat& seat);
/// Sums and extremes are computed in the tensor's dtype: in none of 8 bits, whose scales differ from rank to rank.
void check_summed(const char* collective, const Tensor& tensor);
void check_root(int root, int world);

}  // namespace trainyard::comm
