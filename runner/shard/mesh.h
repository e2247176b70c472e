#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace trainyard::shard {

/// How a world is laid out; replicate × shard is its size.
struct MeshSize {
  int replicate = 1, shard = 1;
  /// Ranks that share a copy between forward and backward, a divisor of `shard`: backward gathers from neighbours alone
  /// (reshard_after_forward: N). 0: as `shard`.
  int regather = 0;
};

/// The world as replicate × shard: ranks of one shard group (neighbours in number, so of one host where possible) split
/// every parameter between them; ranks at the same place of different shard groups hold the same rows.
/// FULL_SHARD is 1 × world, NO_SHARD world × 1, HYBRID_SHARD anything between.
class Mesh {
 public:
  /// Collective over `world`, which must outlive the mesh. Throws std::invalid_argument where replicate × shard is not
  /// its size, or regather no divisor of shard.
  Mesh(comm::Communicator& world, MeshSize size);

  [[nodiscard]] comm::Communicator& world() const { return *world_; }
  [[nodiscard]] comm::Communicator& shard() const { return *shard_; }
  [[nodiscard]] comm::Communicator& replicate() const { return *replicate_; }
  [[nodiscard]] comm::Communicator* regather() const { return regather_.get(); }  ///< null: as shard()

  /// The ranks that hold the same rows as this one, itself among them, ascending.
  [[nodiscard]] std::vector<int> holders() const;

  /// Orderly end, before the world's: waits for the other ranks, at most to the deadline. Nothing is used afterwards.
  void close(std::chrono::steady_clock::time_point deadline);

 private:
  comm::Communicator* world_;
  std::unique_ptr<comm::Communicator> own_shard_, own_replicate_;  // where the dimension is not the whole world
  std::unique_ptr<comm::Communicator> regather_;
  comm::Communicator *shard_, *replicate_;
};

}  // namespace trainyard::shard
