#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace trainyard::comm {

/// A collective of a dry run, as the rank that issues it sees it.
struct DryCollective {
  std::string name;       ///< "all_gather", "reduce_scatter", …
  std::string label;      ///< what the caller called it
  std::string dimension;  ///< "" for the world, else what the split was called: "shard", "replicate"
  int world = 1;          ///< of the dimension
  size_t bytes = 0;       ///< of the whole (world * shard) side
};

/// Who follows the collectives of a dry run: a clock, a counter.
class DryNetwork {
 public:
  virtual ~DryNetwork() = default;
  /// A number for the collective, which is handed to wait().
  virtual int64_t issue(const DryCollective& collective) = 0;
  virtual void wait(int64_t collective) = 0;
  /// How many ranks a split called `name` would have.
  [[nodiscard]] virtual int size_of(const std::string& name) const = 0;
};

/// Rank 0 of a world whose other ranks do not exist: collectives check their arguments as everywhere, tell `network`
/// and leave the tensors as they are. `network` outlives it and its splits.
std::unique_ptr<Communicator> make_dry_run(int world, DryNetwork& network);

}  // namespace trainyard::comm
