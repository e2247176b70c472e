#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.h"

namespace trainyard::comm {

struct Roster;

/// The collective that runs, for messages and for telling ranks apart that do not do the same.
struct Call {
  std::string name;   ///< "all_gather"
  std::string label;  ///< what the caller called it: "layers.3"
  std::chrono::milliseconds timeout;
  std::shared_ptr<const void> buffers = {};  ///< holds the memory of the call, for a backend that cannot take it back

  /// `label` and, where it has a name, the communicator: "layers.3 (shard)".
  static std::string label_in(const std::string& communicator, std::string label);

  /// "all_gather of layers.3".
  [[nodiscard]] std::string text() const { return label.empty() ? name : name + " of " + label; }
};

/// How one family of communicators carries out collectives, on bytes of host memory whose sizes are checked and fit.
///
/// Every function but abort() is called by one thread at a time, blocks until the collective is done, and throws
/// PeerError, naming ranks, when a peer is lost or has not moved for `call.timeout`. Nothing is called after a failure.
/// Buffers may alias only as communicator.h allows.
class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world() const = 0;
  /// Who they are.
  [[nodiscard]] virtual const Roster& roster() const = 0;
  /// The same as Communicator::transport().
  [[nodiscard]] virtual std::string transport() const = 0;

  virtual void all_gather(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) = 0;
  virtual void reduce_scatter(const Call& call, DType dtype, std::span<const std::byte> input,
                              std::span<std::byte> output) = 0;
  virtual void all_reduce(const Call& call, DType dtype, ReduceOp op, std::span<std::byte> values) = 0;
  virtual void broadcast(const Call& call, std::span<std::byte> values, int root) = 0;
  virtual void all_to_all(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) = 0;
  virtual void shift(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) = 0;
  virtual void barrier(const Call& call) = 0;

  /// The backend of `members` (ranks of this one, ascending, this rank among them). Collective over this backend:
  /// every rank calls it, each with the members of its own group. `name` is the new communicator's, the same on each.
  [[nodiscard]] virtual std::unique_ptr<Backend> split(const Call& call, std::span<const int> members,
                                                       const std::string& name) = 0;

  /// Makes a collective under way throw soon, and tells the peers that this rank is gone. Any thread, more than once.
  virtual void abort() noexcept = 0;
};

/// The rank()-th, or any other, of `world` equal slices of `whole`.
template <typename Byte>
std::span<Byte> slice_of(std::span<Byte> whole, int index, int world) {
  const size_t bytes = whole.size() / static_cast<size_t>(world);
  return whole.subspan(static_cast<size_t>(index) * bytes, bytes);
}

/// The bytes of what chunk_of() gives rank `rank` of `world` of `values`.
std::span<std::byte> chunk_bytes(std::span<std::byte> values, size_t element_bytes, int world, int rank);

/// The neighbours of a rank in a ring of `world`.
constexpr int rank_before(int rank, int world) {
  return (rank + world - 1) % world;
}
constexpr int rank_after(int rank, int world) {
  return (rank + 1) % world;
}

/// Copies unless both are the same memory.
void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace trainyard::comm
