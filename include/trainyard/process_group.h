#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "trainyard/export.h"

namespace trainyard::fsdp {

struct ProcessGroupState;
struct MeshState;

/// The ranks that train together, as one of them sees them. Made by run_process() or run_threads(), and valid until the
/// body that was given to them returns. One thread.
class TRAINYARD_EXPORT ProcessGroup {
 public:
  explicit ProcessGroup(ProcessGroupState& state) : state_(&state) {}

  [[nodiscard]] int rank() const;
  [[nodiscard]] int world_size() const;
  /// Returns when every rank has come. Collective.
  void barrier();
  /// The sum of what each rank gives, the same bits on each. Collective.
  double all_reduce(double value);

  [[nodiscard]] ProcessGroupState& state() const { return *state_; }

 private:
  ProcessGroupState* state_;
};

/// Calls `body` as the rank that this process is: of the world that `trainyard launch`, torchrun or the operator tell it
/// of by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; without these of a world of one. Ranks of one host talk through
/// shared memory, others over TCP. Throws what `body` throws, and what exit_code() tells apart.
TRAINYARD_EXPORT void run_process(const std::function<void(ProcessGroup&)>& body);

/// Calls `body` on `world_size` threads of this process, each of which is a rank. Throws the first error by time, once
/// all have ended.
TRAINYARD_EXPORT void run_threads(int world_size, const std::function<void(ProcessGroup&)>& body);

/// The exit code that a program should end with: 2 where its user can mend it, 138 where a rank or the network was
/// lost, 143 after SIGTERM, 1 for anything else (docs/interfaces.md). The operator restarts a job by it.
TRAINYARD_EXPORT int exit_code(const std::exception& error);

/// replicate × shard ranks: parameters are split over `shard` neighbours and copied over `replicate` such groups.
/// -1: what the other leaves. FULL_SHARD is the default, DDP {-1, 1}, HYBRID_SHARD {nodes, ranks of a node}.
struct MeshShape {
  int replicate = 1;
  int shard = -1;
};

/// How the ranks are laid out. Copies share it; models on it are used inside the body that made it, as the ranks are.
class TRAINYARD_EXPORT DeviceMesh {
 public:
  /// Collective. Throws std::invalid_argument where the shape does not come to the number of ranks.
  explicit DeviceMesh(ProcessGroup& ranks, MeshShape shape = {});

  [[nodiscard]] const std::shared_ptr<MeshState>& state() const { return state_; }

 private:
  std::shared_ptr<MeshState> state_;
};

}  // namespace trainyard::fsdp
