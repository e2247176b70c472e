#pragma once

#include <memory>

#include "comm/communicator.h"

namespace trainyard::shard {

/// The world as replicate × shard: ranks of one shard group (neighbours in number, so of one host where possible) split
/// every parameter between them; ranks at the same place of different shard groups hold the same rows.
/// FULL_SHARD is 1 × world, NO_SHARD world × 1, HYBRID_SHARD anything between.
class Mesh {
 public:
  /// Collective over `world`, which must outlive the mesh. Throws std::invalid_argument where replicate × shard is not
  /// its size.
  Mesh(comm::Communicator& world, int replicate, int shard);

  [[nodiscard]] comm::Communicator& world() const { return *world_; }
  [[nodiscard]] comm::Communicator& shard() const { return *shard_; }
  [[nodiscard]] comm::Communicator& replicate() const { return *replicate_; }

 private:
  comm::Communicator* world_;
  std::unique_ptr<comm::Communicator> own_shard_, own_replicate_;  // where the dimension is not the whole world
  comm::Communicator *shard_, *replicate_;
};

}  // namespace trainyard::shard
