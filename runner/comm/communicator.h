#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/flight_record.h"
#include "tensor/tensor.h"

namespace trainyard::comm {

enum class ReduceOp { Sum, Max, Min };

/// A collective under way. Copies share it.
class Work {
 public:
  class State {
   public:
    virtual ~State() = default;
    /// They do what Work's do, and throw what the collective threw.
    virtual void wait() = 0;
    virtual void wait_on_host() { wait(); }
    /// Whether wait() returns when the collective is done, not before.
    [[nodiscard]] virtual bool holds_the_host() const { return true; }
  };
  Work() = default;  ///< done already
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// From the return on this thread may use the tensors: those of the host are there; on those of a device its current
  /// stream may be given work, which runs after the collective, and nothing waits here. Throws PeerError, naming the
  /// ranks that did not come within timeout(), where that is known by now.
  void wait() const;
  /// Returns when the collective is done, on a device too: what is read back from there after wait() alone may be what
  /// a collective that failed has left. Throws as wait().
  void wait_on_host() const;

 private:
  std::shared_ptr<State> state_;
};

/// How long the calling thread has been in waits for a Work in all: what collectives took that nothing hid.
std::chrono::nanoseconds waited_by_this_thread();

/// One collective, for traces and tests. Times are of the steady clock.
struct CollectiveRecord {
  std::string name;   ///< "all_gather", "reduce_scatter", …
  std::string label;  ///< what the caller called it: "layers.3"
  size_t bytes = 0;   ///< of the whole (world * shard) side
  std::chrono::steady_clock::time_point issued, begun, ended;
};
using CollectiveObserver = std::function<void(const CollectiveRecord&)>;

/// The ranks of one mesh dimension, and their collectives on tensors.
///
/// Collectives are asynchronous: they return at once, run in the order of issue on a thread (or stream) of the
/// communicator's own, and until Work::wait() has returned the tensors belong to the call. Every rank issues the same
/// collectives, in the same order, with the same shapes. One thread per communicator issues.
/// Tensors lie on the host or on a device, those of one collective all on one, and on every rank alike: nccl's on that
/// for which the communicator was connected (Settings::device), the others' on any, staged through the host. On a
/// device a collective comes after what the issuing thread's current stream had been given. Between nccl's collectives
/// on the host and on the device there is no order.
/// Shapes and dtypes are checked before anything is sent: std::invalid_argument.
/// in_process and gloo add in rank order, so runs repeat bit for bit and agree with one another; mpi repeats at the
/// same world size, and so does nccl as long as it chooses the same algorithm. bfloat16 and float16 sums are kept in
/// float32 and rounded once, but for nccl's, which may be rounded at every rank. A failed collective poisons the
/// communicator: every later one throws the same PeerError.
class Communicator {
 public:
  virtual ~Communicator() = default;  ///< still open: aborts, never waits for a peer

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world() const = 0;

  /// output [world * rows, ...] gets input [rows, ...] of every rank, in rank order. `input` may be this rank's slice
  /// of `output`.
  [[nodiscard]] Work all_gather(const Tensor& input, Tensor& output, std::string label = {}) {
    return all_gather_coalesced({&input, 1}, {&output, 1}, std::move(label));
  }
  /// output [rows, ...] gets the sum over ranks of the rank()-th slice of input [world * rows, ...]. `output` may be
  /// this rank's slice of `input`.
  [[nodiscard]] Work reduce_scatter(const Tensor& input, Tensor& output, std::string label = {}) {
    return reduce_scatter_coalesced({&input, 1}, {&output, 1}, std::move(label));
  }
  /// Several, outputs[i] of inputs[i], as one collective: one in the records, and NCCL has one launch for them. Where
  /// each belongs in a place of its own, nothing has to be copied before or after.
  [[nodiscard]] virtual Work all_gather_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                                  std::string label = {}) = 0;
  [[nodiscard]] virtual Work reduce_scatter_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                                      std::string label = {}) = 0;
  /// Every element of `values` becomes its sum (max, min) over the ranks, the same bits on each.
  [[nodiscard]] virtual Work all_reduce(Tensor& values, ReduceOp op = ReduceOp::Sum, std::string label = {}) = 0;
  [[nodiscard]] virtual Work broadcast(Tensor& values, int root, std::string label = {}) = 0;
  /// Slice j of `output` [world * rows, ...] is slice rank() of rank j's `input` [world * rows, ...].
  [[nodiscard]] virtual Work all_to_all(const Tensor& input, Tensor& output, std::string label = {}) = 0;
  /// The ranks as a ring: `output` gets the `input` of the rank before, and that of rank 0 the last rank's. Both have
  /// one shape and dtype and do not overlap.
  [[nodiscard]] virtual Work shift(const Tensor& input, Tensor& output, std::string label = {}) = 0;
  /// Returns when every rank has come. Waits itself.
  virtual void barrier() = 0;

  /// The ranks that give the same `color`, ordered by this communicator's rank. Collective. `name` marks it in
  /// messages.
  [[nodiscard]] virtual std::unique_ptr<Communicator> split(int color, std::string name) = 0;

  /// What messages call the ranks of the world beside their numbers, by number: "shard 1, tensor 0". For its splits
  /// too; before anything is in flight.
  virtual void name_ranks(std::vector<std::string> places) = 0;

  /// What carries this rank's bytes, for people: "shared memory to rank 1, TCP to ranks 2, 3".
  [[nodiscard]] virtual std::string transport() const = 0;
  [[nodiscard]] virtual std::chrono::milliseconds timeout() const = 0;
  /// Orderly end: waits for what was issued, at most to the deadline. Afterwards only the destructor may be called.
  virtual void close(std::chrono::steady_clock::time_point deadline) = 0;

  /// Called after each collective of this communicator and of those that were split off it, on the thread that ran it;
  /// null stops it. Returns the one before. Set while nothing is in flight.
  virtual CollectiveObserver on_collective(CollectiveObserver observer) = 0;

  /// The last collectives of this rank; communicators that were split off share it.
  [[nodiscard]] virtual std::shared_ptr<const FlightRecord> flight_record() const = 0;
};

}  // namespace trainyard::comm
