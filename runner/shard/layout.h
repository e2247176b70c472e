#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "tensor/chunk.h"

namespace trainyard::shard {

/// One parameter's place in its group.
struct Piece {
  autograd::Parameter* parameter;
  int64_t rows, row_elements;
  int64_t chunk_rows;    ///< rows of the first, longest chunk: what every rank sends, short ones padded by zeros
  Rows local;            ///< of this rank
  int64_t shard_offset;  ///< elements, in a rank's padded shard
  int64_t whole_offset;  ///< elements, in the group's unsharded parameters
};

/// How the parameters of one group lie: unsharded one after the other; sharded, in a rank's padded shard, each one's
/// chunk after the other's. Shards side by side in rank order are what a gather gives and a reduce-scatter takes.
struct Layout {
  /// `dtype`: of the elements; those of a packed row in NF4 are its bytes, UInt8.
  Layout(std::span<autograd::Parameter* const> parameters, int world, int rank, DType dtype = DType::Float32);

  std::vector<Piece> pieces;
  int world;
  int64_t shard_elements = 0;  ///< of a padded shard
  int64_t unsharded_elements = 0;
};

/// Whether each parameter of it is moved on its own between its place there and its place in the whole, without a
/// buffer in between: on a device, where every parameter's rows divide by the ranks, so that nothing is padded. On the
/// CPU one message for all is faster than the copies cost.
bool coalesces(const Layout& layout, Device device);

/// Views of each piece: in a padded shard, and in the unsharded parameters.
std::vector<Tensor> parts_of(const Layout& layout, const Tensor& shard);
std::vector<Tensor> unsharded_of(const Layout& layout, const Tensor& whole);

/// Copies gathered shards [world · shard_elements] into unsharded parameters [unsharded_elements], cast to the dtype of
/// `whole`.
void copy_out(const Layout& layout, const Tensor& gathered, Tensor& whole);

/// What `rank` holds of it: unsharded [unsharded_elements] into one padded shard [shard_elements], padding zeroed, cast to
/// the dtype of `shard`.
void copy_shard_in(const Layout& layout, int rank, const Tensor& whole, Tensor& shard);

/// The reverse of copy_out: unsharded [unsharded_elements] into shards side by side, padding zeroed, cast to the dtype of
/// `shards`.
void copy_in(const Layout& layout, const Tensor& whole, Tensor& shards);

}  // namespace trainyard::shard
