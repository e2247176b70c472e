#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "base/cpus.h"
#include "base/error.h"
#include "comm/in_process.h"
#include "comm/settings.h"
#include "common/mutex.h"
#include "fsdp/state.h"
#include "ops/threads.h"
#include "rendezvous/membership.h"
#include "rendezvous/memory_store.h"
#include "rendezvous/place.h"
#include "rendezvous/stop.h"

namespace trainyard::fsdp {
namespace {

using Body = std::function<void(ProcessGroup&)>;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFarewell{10};
constexpr std::chrono::minutes kTimeout{10};  // of one collective

/// Runs `body` and ends the communicators in good order. A body that throws leaves them open, and so the others learn.
void run_body(ProcessGroupState& state, const Body& body) {
  const auto granted = rendezvous::process_environment();
  const auto cpus = granted.find("TRAINYARD_CPUS");
  const int here = cpus_here(cpus == granted.end() ? std::nullopt : std::optional<std::string_view>(cpus->second));
  ops::set_threads(std::max(here / state.local_world, 1));
  ProcessGroup ranks(state);
  body(ranks);
  for (const auto& each : state.meshes) each->mesh->close(Clock::now() + kFarewell);
  state.comm.close(Clock::now() + kFarewell);
}

void run_alone(const rendezvous::Place& place, const Body& body) {
  rendezvous::MemoryStore store;
  const auto alone = comm::make_in_process(1, kTimeout);
  ProcessGroupState state{.comm = *alone.front(), .store = store, .generation = place.generation};
  run_body(state, body);
}

rendezvous::JoinSettings join_settings(const rendezvous::SignalWatch& signals) {
  rendezvous::JoinSettings join;
  join.environment = rendezvous::process_environment();
  join.token = rendezvous::job_token(join.environment);
  join.config = join.config_text = "a program with the library";
  join.interrupted = [&signals] { return signals.is_requested(); };
  return join;
}

/// Keeps the first error that a thread throws.
class FirstError {
 public:
  void keep(std::exception_ptr error) {
    const MutexLock lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void rethrow() {
    const MutexLock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Mutex mutex_;
  std::exception_ptr error_ GUARDED_BY(mutex_);
};

/// What other ranks than this one have lost by its end: it says why before its connections close.
void run_member(rendezvous::Membership& membership, const Body& body) {
  try {
    comm::Settings settings;
    settings.rank = membership.rank();
    settings.world = membership.world();
    settings.host = membership.self().host;
    settings.local_world = membership.place().local_world;
    settings.store = &membership.store();
    settings.timeout = kTimeout;
    settings.address = membership.self().address;
    const auto communicator = comm::connect(settings);
    ProcessGroupState state{.comm = *communicator,
                            .store = membership.store(),
                            .local_world = settings.local_world,
                            .generation = membership.place().generation};
    run_body(state, body);
  } catch (const std::exception& error) {
    if (exit_code_of(error) == ExitCode::Input) membership.leave_last_words(message_of(error));
    membership.let_others_hear();
    throw;
  }
  membership.leave(kFarewell);
}

}  // namespace

int ProcessGroup::rank() const {
  return state_->comm.rank();
}

int ProcessGroup::world_size() const {
  return state_->comm.world();
}

void ProcessGroup::barrier() {
  state_->comm.barrier();
}

double ProcessGroup::all_reduce(double value) {
  Tensor sum = Tensor::from<double>(std::span(&value, 1), {1});
  state_->comm.all_reduce(sum).wait();
  return sum.values<double>()[0];
}

void run_process(const Body& body) {
  const rendezvous::Place place = rendezvous::place_of(rendezvous::process_environment());
  if (place.kind == rendezvous::Place::Kind::Node)
    throw InputError("this process is told of a node and not of a rank; trainyard launch starts the ranks of a node");
  if (place.world == 1) return run_alone(place, body);
  const auto joined = [&place] {
    const rendezvous::SignalWatch signals;
    return rendezvous::join(place, join_settings(signals));
  };
  rendezvous::Membership membership = joined();
  run_member(membership, body);
}

void run_threads(int world_size, const Body& body) {
  if (world_size < 1) throw std::invalid_argument(fmt::format("run_threads: {} ranks; at least 1", world_size));
  rendezvous::MemoryStore store;
  auto communicators = comm::make_in_process(world_size, kTimeout);
  FirstError first;
  {
    std::vector<std::jthread> threads;
    for (auto& each : communicators)
      threads.emplace_back([&store, &body, &first, world_size, own = std::move(each)]() mutable {
        ProcessGroupState state{.comm = *own, .store = store, .local_world = world_size};
        try {
          run_body(state, body);
        } catch (...) {  // what it made goes only now, for which the others fail too
          first.keep(std::current_exception());
        }
      });
  }
  first.rethrow();
}

int exit_code(const std::exception& error) {
  return static_cast<int>(exit_code_of(error));
}

DeviceMesh::DeviceMesh(ProcessGroup& ranks, MeshShape shape) {
  const int world = ranks.world_size();
  if (shape.replicate < 0 && shape.shard > 0) shape.replicate = world / shape.shard;
  if (shape.shard < 0 && shape.replicate > 0) shape.shard = world / shape.replicate;
  const shard::MeshSize size{shape.replicate, shape.shard};
  auto mesh = std::make_shared<shard::Mesh>(ranks.state().comm, size);
  state_ = std::make_shared<MeshState>(MeshState{ranks.state(), std::move(mesh)});
  ranks.state().meshes.push_back(state_);
}

}  // namespace trainyard::fsdp
