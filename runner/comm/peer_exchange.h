#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "comm/ordered_fold.h"
#include "comm/roster.h"
#include "comm/shared_segment.h"

namespace trainyard::comm {

/// Takes what the peers send in one exchange, in place, as it comes.
class Sink {
 public:
  virtual ~Sink() = default;
  /// How many bytes `peer` sends; none: it sends no message.
  [[nodiscard]] virtual std::optional<size_t> expected(int peer) const = 0;
  /// Takes a piece of what can be read from `channel`, of which this is called for one after the other.
  /// True if anything was taken.
  virtual bool take(int peer, Channel& channel) = 0;
};

/// Copies each peer's message to where it belongs.
class CopySink final : public Sink {
 public:
  /// `into` by rank; none: that rank sends nothing.
  explicit CopySink(std::vector<std::optional<std::span<std::byte>>> into) : into_(std::move(into)) {}
  [[nodiscard]] std::optional<size_t> expected(int peer) const override;
  bool take(int peer, Channel& channel) override;

 private:
  std::vector<std::optional<std::span<std::byte>>> into_;  ///< what is still to come
};

/// Folds equal messages of all ranks, this rank's `own` in its place, into `result`, block by block in rank order.
class FoldSink final : public Sink {
 public:
  struct Task {
    DType dtype;
    ReduceOp op;
    int rank, world;
    std::span<const std::byte> own;
    std::span<std::byte> result;  ///< may be `own`
  };
  explicit FoldSink(const Task& task);
  [[nodiscard]] std::optional<size_t> expected(int) const override { return task_.own.size(); }
  bool take(int peer, Channel& channel) override;

 private:
  void fold_own();
  void add(const std::byte* from, size_t count);
  void next_rank();

  const Task task_;
  const size_t element_bytes_, count_;
  OrderedFold fold_;
  size_t block_ = 0;  ///< first element of the block
  int turn_ = 0;      ///< whose contribution is next, from element `done_` of the block on
  size_t done_ = 0;
};

/// This rank's channels to all others, and the one way that data moves over them: exchanges, in which each rank sends
/// at most a message to each other. Progress is made by the calling thread; it sleeps while nothing can be done. One
/// thread at a time; abort() any.
class PeerExchange {
 public:
  struct Parts {
    Roster roster;
    uint64_t session;
    std::optional<SharedSegment> segment;            ///< this rank's; none where no channel is a SharedChannel
    Doorbell own_bell;                               ///< where there is no segment
    std::vector<std::unique_ptr<Channel>> channels;  ///< by rank; null for this one

    /// What the channels ring.
    [[nodiscard]] Doorbell& bell() { return segment ? segment->head().doorbell : own_bell; }
  };
  explicit PeerExchange(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
  ~PeerExchange();

  [[nodiscard]] const Roster& roster() const { return parts_->roster; }
  /// "shared memory to rank 1, TCP to ranks 2, 3".
  [[nodiscard]] std::string transport() const;

  using Outgoing = std::vector<std::optional<std::span<const std::byte>>>;  ///< by rank; none: no message
  /// Returns when all of `outgoing` is sent and all that `sink` expects is taken. Throws PeerError;
  /// std::logic_error where a peer sends another collective's message.
  void exchange(const Call& call, const Outgoing& outgoing, Sink& sink);

  void abort() noexcept;

 private:
  struct Progress;
  void begin(const Call& call, const Outgoing& outgoing, Progress& progress);
  bool advance(const Call& call, Sink& sink, Progress& progress);
  bool advance_peer(const Call& call, Sink& sink, Progress& progress, int peer);
  void check_header(const Call& call, int peer, size_t expected) const;
  void flush(const Call& call, const Progress& progress);
  void look_after_peers(const Call& call, Progress& progress);
  /// Those that have not begun this exchange; where all have, those with which it is not done.
  [[nodiscard]] std::vector<int> missing_peers(const Progress& progress) const;
  /// A peer with which this exchange is done has begun the next one. The peer may wait for this rank there, which is
  /// not to blame; so this rank, which knows whom it waits for, is the first to give up.
  [[nodiscard]] bool is_behind(const Progress& progress) const;
  [[noreturn]] void fail(const std::string& message, int culprit);
  [[noreturn]] void fail_lost(const Call& call, int peer, const std::string& how);
  [[nodiscard]] int culprit_by(int peer) const;
  void leave(const Notice& notice) noexcept;

  const std::unique_ptr<Parts> parts_;
  uint64_t exchanges_ = 0;
  std::atomic<bool> is_aborted_{false};
  bool has_left_ = false;
};

}  // namespace trainyard::comm
