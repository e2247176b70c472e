#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace trainyard::comm {

/// Comes before every message, so that a stranger, or ranks that issue different collectives, are told apart from data.
struct alignas(64) MessageHeader {
  uint64_t session;  ///< drawn by rank 0 of the communicator
  uint64_t number;   ///< of the message, counted by each rank
  uint64_t bytes;    ///< that follow
  char name[40];     ///< of the collective
};
static_assert(sizeof(MessageHeader) == 64);

/// The peer is gone: what its channel throws. `what()` is the way it went.
class ChannelLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a rank leaves for its peers when it ends, so that they blame the one that failed first.
struct Notice {
  int32_t culprit = -1;  ///< world number of the rank that it lost; -1: none known
};

/// Both directions between this rank and one peer: a message at a time each way, moved piece by piece without waiting.
/// One thread at a time.
class Channel {
 public:
  virtual ~Channel() = default;
  [[nodiscard]] virtual const char* name() const = 0;  ///< for people

  /// Begins a message. `payload` is borrowed until flush() has returned.
  virtual void send(const MessageHeader& header, std::span<const std::byte> payload) = 0;
  /// Moves a piece of the message under way. True if anything moved. Throws ChannelLost.
  virtual bool advance() = 0;
  /// Nothing is left for advance().
  [[nodiscard]] virtual bool is_sent() const = 0;
  /// After is_sent(): waits until the payload is no longer read; false: not within `limit`. Throws ChannelLost.
  [[nodiscard]] virtual bool flush(std::chrono::milliseconds limit) = 0;

  /// The header of the next message; null until it has come. The one before is consumed. Throws ChannelLost.
  [[nodiscard]] virtual const MessageHeader* header() = 0;
  /// Takes the header: what follows it may be read.
  virtual void accept() = 0;
  /// Bytes of the accepted message that can be read in place now, whole 64-byte lines except at its end; may be empty.
  /// Throws ChannelLost.
  [[nodiscard]] virtual std::span<const std::byte> readable() = 0;
  /// Gives back the first `bytes` of readable(). Whole 64-byte lines, or the message's rest.
  virtual void consume(size_t bytes) = 0;
  /// The message has no payload left to consume.
  [[nodiscard]] virtual bool is_received() const = 0;

  /// What the peer left, if it ended. A peer that is gone without a word: ChannelLost. Null while it is there.
  [[nodiscard]] virtual const Notice* check_peer() = 0;
  /// Leaves a notice for the peer, without waiting.
  virtual void leave(const Notice& notice) noexcept = 0;
  /// Ends flush(). Any thread.
  virtual void abort() noexcept = 0;
};

}  // namespace trainyard::comm
