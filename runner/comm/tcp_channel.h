#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "comm/channel.h"
#include "comm/doorbell.h"
#include "common/mutex.h"

namespace trainyard::comm {

/// A channel over gloo's TCP transport. Chunks are received into a few buffers that are always posted, so that a small
/// message takes one way and no memory grows with its size; large ones are sent from where they lie.
///
/// gloo offers neither a look at a buffer nor a wait for several, and a wait of its that runs out of time closes every
/// connection. So a thread of the channel waits for its chunks, without limit, and rings the rank's doorbell.
class TcpChannel final : public Channel {
 public:
  /// The pair with `peer` of `context` is connected. `chunk_bytes` must be the same on both sides; `bell` outlives it.
  TcpChannel(std::shared_ptr<gloo::transport::Context> context, int peer, size_t chunk_bytes, Doorbell& bell);
  ~TcpChannel() override;

  [[nodiscard]] const char* name() const override { return "TCP"; }
  void send(const MessageHeader& header, std::span<const std::byte> payload) override;
  bool advance() override { return false; }  // gloo's thread does
  [[nodiscard]] bool is_sent() const override { return true; }
  [[nodiscard]] bool flush(std::chrono::milliseconds limit) override;
  [[nodiscard]] const MessageHeader* header() override;
  void accept() override;
  [[nodiscard]] std::span<const std::byte> readable() override;
  void consume(size_t bytes) override;
  [[nodiscard]] bool is_received() const override { return to_read_ == 0; }
  [[nodiscard]] const Notice* check_peer() override;
  void leave(const Notice& notice) noexcept override;
  void abort() noexcept override;

 private:
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
  struct Inbound {
    std::unique_ptr<std::byte[]> memory;
    Buffer buffer;
  };
  void wait_for_chunks(const std::stop_token& stop);
  void wait_until_sent(gloo::transport::UnboundBuffer& buffer, std::chrono::milliseconds limit) const;
  /// Stays what it is without the mutex: the thread that asks is the one that replaces it.
  gloo::transport::UnboundBuffer* payload();
  bool arrived();
  void next_chunk();

  const std::shared_ptr<gloo::transport::Context> context_;
  const int peer_;
  const size_t chunk_bytes_;
  Doorbell& bell_;

  std::vector<std::byte> first_;  ///< header and, if it is small, payload of the message under way
  Buffer first_buffer_;
  Mutex payload_mutex_;                       ///< abort() comes from another thread
  Buffer payload_buffer_ GUARDED_BY(payload_mutex_);
  int first_unsent_ = 0, chunks_unsent_ = 0;  ///< given to gloo and not known to be finished

  std::vector<Inbound> inbound_;      ///< chunks come into them in turn
  std::atomic<uint64_t> arrived_{0};  ///< chunks so far; written by the thread
  std::atomic<bool> is_lost_{false};  ///< no more will come
  uint64_t read_ = 0;                 ///< chunks read and given back
  size_t at_ = 0;                     ///< where reading goes on in the chunk
  size_t left_of_chunk_ = 0;
  size_t to_read_ = 0;  ///< of the message

  Notice seen_, left_;
  Buffer seen_buffer_, left_buffer_;
  std::jthread thread_;  ///< last: uses all above
};

}  // namespace trainyard::comm
