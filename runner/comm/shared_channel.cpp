#include "comm/shared_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace trainyard::comm {
namespace {

constexpr size_t kLine = 64;
// Moved between two looks at the other direction: large enough to be a good copy, small enough that the peer reads it
// from a shared cache while the next piece is written.
constexpr size_t kPiece = size_t{64} << 10;

size_t lines(size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

/// Less room than this is not worth waking a sender for.
size_t least_piece(size_t capacity) {
  return std::min(kPiece, capacity / 4);
}

}  // namespace

SharedChannel::SharedChannel(SharedSegment& own, int own_ring, SharedSegment peer, int peer_ring)
    : own_(own),
      peer_(std::move(peer)),
      in_(own_.ring(own_ring)),
      out_(peer_.ring(peer_ring)),
      in_data_(own_.ring_data(own_ring)),
      out_data_(peer_.ring_data(peer_ring)),
      in_bytes_(own_.ring_bytes()),
      out_bytes_(peer_.ring_bytes()) {}

void SharedChannel::send(const MessageHeader& header, std::span<const std::byte> payload) {
  header_ = header;
  payload_ = payload;
  sent_ = 0;
  header_sent_ = false;
}

size_t SharedChannel::room(size_t wanted) {
  const size_t room = out_bytes_ - static_cast<size_t>(written_ - out_.consumed.load(std::memory_order_acquire));
  if (room >= wanted) return room;
  // The receiver is to ring when it gives room back. It looks at the flag after it has; so look once more.
  out_.sender_waits.store(1, std::memory_order_seq_cst);
  return out_bytes_ - static_cast<size_t>(written_ - out_.consumed.load(std::memory_order_seq_cst));
}

void SharedChannel::put(const void* from, size_t bytes) {
  const size_t at = written_ % out_bytes_;
  const size_t first = std::min(bytes, out_bytes_ - at);
  std::memcpy(out_data_ + at, from, first);
  if (bytes > first) std::memcpy(out_data_, static_cast<const std::byte*>(from) + first, bytes - first);
  written_ += lines(bytes);
}

bool SharedChannel::advance() {
  if (is_sent()) return false;
  const size_t rest = (header_sent_ ? 0 : kLine) + lines(payload_.size() - sent_);
  const size_t wanted = std::min(rest, least_piece(out_bytes_));
  const size_t free = room(wanted);
  if (free < wanted) return false;
  const uint64_t before = written_;
  if (!header_sent_) {
    put(&header_, sizeof header_);
    header_sent_ = true;
  }
  const size_t piece = std::min({payload_.size() - sent_, free - static_cast<size_t>(written_ - before), kPiece});
  if (piece > 0) put(payload_.data() + sent_, piece);
  sent_ += piece;
  out_.written.store(written_, std::memory_order_release);
  peer_.head().doorbell.ring();
  return true;
}

const MessageHeader* SharedChannel::header() {
  if (in_.written.load(std::memory_order_acquire) == consumed_) return nullptr;
  return reinterpret_cast<const MessageHeader*>(in_data_ + consumed_ % in_bytes_);
}

void SharedChannel::accept() {
  to_read_ = static_cast<size_t>(reinterpret_cast<const MessageHeader*>(in_data_ + consumed_ % in_bytes_)->bytes);
  give_back(sizeof(MessageHeader));
}

std::span<const std::byte> SharedChannel::readable() {
  if (to_read_ == 0) return {};
  const auto there = static_cast<size_t>(in_.written.load(std::memory_order_acquire) - consumed_);
  const size_t at = consumed_ % in_bytes_;
  return {in_data_ + at, std::min({there, to_read_, in_bytes_ - at, kPiece})};
}

void SharedChannel::consume(size_t bytes) {
  to_read_ -= bytes;
  give_back(lines(bytes));
}

void SharedChannel::give_back(size_t bytes) {
  consumed_ += bytes;
  in_.consumed.store(consumed_, std::memory_order_seq_cst);
  if (in_.sender_waits.load(std::memory_order_seq_cst) == 0) return;
  const auto used = static_cast<size_t>(in_.written.load(std::memory_order_acquire) - consumed_);
  if (in_bytes_ - used >= least_piece(in_bytes_) && in_.sender_waits.exchange(0) != 0) peer_.head().doorbell.ring();
}

const Notice* SharedChannel::check_peer() {
  if (peer_.head().has_left.load(std::memory_order_acquire) != 0) {
    seen_.culprit = peer_.head().culprit.load(std::memory_order_relaxed);
    return &seen_;
  }
  if (!peer_.is_owner_alive()) throw ChannelLost("its process ended");
  return nullptr;
}

void SharedChannel::leave(const Notice& notice) noexcept {
  own_.head().culprit.store(notice.culprit, std::memory_order_relaxed);
  own_.head().has_left.store(1, std::memory_order_release);
  peer_.head().doorbell.ring();
}

}  // namespace trainyard::comm
