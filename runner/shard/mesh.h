#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace trainyard::shard {

/// The dimensions of a device mesh, outermost first: ranks that differ in the last alone are neighbours in number, and
/// so on one host where possible.
enum class Dimension {
  Replicate,  ///< ranks that hold the same rows of parameters, and all-reduce their gradients
  Shard,      ///< ranks that split every parameter between them: shard × context (torchtitan's dp_shard_cp)
  Context,    ///< ranks that split the tokens of the same rows of a batch between them; a part of one of those above
  Tensor,     ///< ranks that split each layer's products between them, on the same tokens
};
inline constexpr std::array kDimensions{Dimension::Replicate, Dimension::Shard, Dimension::Context, Dimension::Tensor};
std::string_view name_of(Dimension dimension);  ///< "replicate"

/// How a world is laid out; replicate × shard × context × tensor is its size.
struct MeshSize {
  int replicate = 1, shard = 1;
  /// Ranks of PyTorch's post-forward mesh, which share a copy between forward and backward, a divisor of
  /// of(Dimension::Shard): backward gathers from neighbours alone (reshard_after_forward: N). 0: all of those.
  int post_forward = 0;
  int context = 1;
  /// Parameters are whole on each rank of a context, as with no_shard: they are replicas of each other.
  bool replicates_context = false;
  int tensor = 1;

  /// Ranks of the dimension's communicators.
  [[nodiscard]] int of(Dimension dimension) const;
  /// The distance in number between neighbours of a dimension.
  [[nodiscard]] int stride_of(Dimension dimension) const;
  [[nodiscard]] int world() const;
  /// Ranks that get rows of their own: those of a context share theirs, and so do those of a tensor dimension.
  [[nodiscard]] int data_ranks() const { return replicate * shard; }
  /// Where a rank of the world stands in the dimension.
  [[nodiscard]] int place_in(Dimension dimension, int rank) const;
  /// The same among the ranks that get rows of their own.
  [[nodiscard]] int data_rank(int rank) const { return rank / (context * tensor); }
};

/// The world as a grid of named dimensions (PyTorch's DeviceMesh). FULL_SHARD is 1 × world, NO_SHARD world × 1,
/// HYBRID_SHARD anything between.
class Mesh {
 public:
  /// Collective over `world`, which must outlive the mesh. Throws std::invalid_argument where the dimensions do not
  /// multiply up to its size, or post_forward is no divisor of shard.
  Mesh(comm::Communicator& world, MeshSize size);

  [[nodiscard]] comm::Communicator& world() const { return *world_; }
  [[nodiscard]] const MeshSize& size() const { return size_; }
  /// The ranks that differ from this one in that dimension alone, itself among them.
  [[nodiscard]] comm::Communicator& of(Dimension dimension) const;
  /// The part of the shard dimension that backward gathers from; null: all of it.
  [[nodiscard]] comm::Communicator* post_forward() const { return post_forward_.get(); }

  /// The ranks that hold the same rows as this one, itself among them, ascending.
  [[nodiscard]] std::vector<int> holders() const;

  /// Ranks of a tensor dimension see the same rows: what is summed over the world counts on the first of them.
  [[nodiscard]] bool counts_rows() const { return size_.place_in(Dimension::Tensor, world_->rank()) == 0; }

  /// Orderly end, before the world's: waits for the other ranks, at most to the deadline. Nothing is used afterwards.
  void close(std::chrono::steady_clock::time_point deadline);

 private:
  comm::Communicator* world_;
  MeshSize size_;
  std::array<std::unique_ptr<comm::Communicator>, kDimensions.size()> own_;  // null where it is the whole world
  std::unique_ptr<comm::Communicator> post_forward_;
};

}  // namespace trainyard::shard
