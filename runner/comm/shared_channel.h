#pragma once

#include <memory>

#include "comm/channel.h"
#include "comm/shared_segment.h"

namespace trainyard::comm {

/// A channel to a rank of the same host: bytes are copied once into the ring in the receiver's segment, and read there.
class SharedChannel final : public Channel {
 public:
  /// `own` is this rank's segment, in which `own_ring` is the peer's to write; `peer` is the peer's, in which
  /// `peer_ring` is this rank's. `own` must outlive the channel.
  SharedChannel(SharedSegment& own, int own_ring, SharedSegment peer, int peer_ring);

  [[nodiscard]] const char* name() const override { return "shared memory"; }
  void send(const MessageHeader& header, std::span<const std::byte> payload) override;
  bool advance() override;
  [[nodiscard]] bool is_sent() const override { return header_sent_ && sent_ == payload_.size(); }
  [[nodiscard]] bool flush(std::chrono::milliseconds) override { return true; }
  [[nodiscard]] const MessageHeader* header() override;
  void accept() override;
  [[nodiscard]] std::span<const std::byte> readable() override;
  void consume(size_t bytes) override;
  [[nodiscard]] bool is_received() const override { return to_read_ == 0; }
  [[nodiscard]] const Notice* check_peer() override;
  void leave(const Notice& notice) noexcept override;
  void abort() noexcept override {}

 private:
  [[nodiscard]] size_t room(size_t wanted);
  void put(const void* from, size_t bytes);
  void give_back(size_t bytes);

  SharedSegment& own_;
  SharedSegment peer_;
  Ring& in_;
  Ring& out_;
  std::byte* const in_data_;
  std::byte* const out_data_;
  const size_t in_bytes_, out_bytes_;

  MessageHeader header_{};
  std::span<const std::byte> payload_;
  size_t sent_ = 0;
  bool header_sent_ = true;
  uint64_t written_ = 0;  ///< what this rank has put into out_, published or not

  size_t to_read_ = 0;
  uint64_t consumed_ = 0;
  Notice seen_;
};

}  // namespace trainyard::comm
