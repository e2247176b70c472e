#include "comm/tcp_channel.h"

#include <gloo/common/error.h>
#include <gloo/transport/pair.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "common/condition_variable.h"
#include "common/mutex.h"

namespace trainyard::comm {
namespace {

constexpr const char* kClosed = "its connection was closed";
constexpr size_t kInbound = 4;
constexpr uint64_t kDataSlot = 1, kNoticeSlot = 2;
// A payload up to this size goes with its header: one system call less counts for more than the copy.
constexpr size_t kWithHeader = size_t{16} << 10;
constexpr std::chrono::milliseconds kRepeat{200};
constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);

}  // namespace

TcpChannel::TcpChannel(std::shared_ptr<gloo::transport::Context> context, int peer, size_t chunk_bytes, Doorbell& bell)
    : context_(std::move(context)),
      peer_(peer),
      chunk_bytes_(chunk_bytes),
      bell_(bell),
      first_(sizeof(MessageHeader) + kWithHeader),
      inbound_(kInbound) {
  first_buffer_ = context_->createUnboundBuffer(first_.data(), first_.size());
  seen_buffer_ = context_->createUnboundBuffer(&seen_, sizeof seen_);
  left_buffer_ = context_->createUnboundBuffer(&left_, sizeof left_);
  const size_t bytes = std::max(chunk_bytes_, first_.size());
  try {
    seen_buffer_->recv(peer_, kNoticeSlot);
    for (Inbound& inbound : inbound_) {
      inbound.memory.reset(new std::byte[bytes]);
      inbound.buffer = context_->createUnboundBuffer(inbound.memory.get(), bytes);
      inbound.buffer->recv(peer_, kDataSlot);
    }
  } catch (const gloo::Exception&) {
    is_lost_ = true;  // the first look at the channel says so
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { wait_for_chunks(stop); });
}

TcpChannel::~TcpChannel() {
  thread_.request_stop();
  for (const Inbound& inbound : inbound_)
    if (inbound.buffer) inbound.buffer->abortWaitRecv();
  if (thread_.joinable()) thread_.join();
  context_->getPair(peer_)->close();  // gloo's thread is done with the buffers, before they go
}

void TcpChannel::wait_for_chunks(const std::stop_token& stop) {
  while (!stop.stop_requested() && !is_lost_) {
    try {
      if (inbound_[arrived_ % kInbound].buffer->waitRecv(nullptr, kForever)) ++arrived_;
    } catch (const std::exception&) {
      is_lost_ = true;
    }
    bell_.ring();
  }
  Mutex mutex;
  StoppableConditionVariable stopped;
  for (const MutexLock lock(mutex); !stop.stop_requested();) {
    abort();  // see wait_until_sent()
    stopped.wait_for(mutex, stop, kRepeat, [] { return false; });
  }
}

void TcpChannel::send(const MessageHeader& header, std::span<const std::byte> payload) {
  const size_t with_header = payload.size() <= kWithHeader ? payload.size() : 0;
  std::memcpy(first_.data(), &header, sizeof header);
  if (with_header > 0) std::memcpy(first_.data() + sizeof header, payload.data(), with_header);
  try {
    first_buffer_->send(peer_, kDataSlot, 0, sizeof header + with_header);
    ++first_unsent_;
    if (with_header == payload.size()) return;
    const MutexLock lock(payload_mutex_);
    // gloo's interface has no const, but a send only reads.
    payload_buffer_ = context_->createUnboundBuffer(const_cast<std::byte*>(payload.data()), payload.size());
    for (size_t begin = 0; begin < payload.size(); begin += chunk_bytes_, ++chunks_unsent_)
      payload_buffer_->send(peer_, kDataSlot, begin, std::min(chunk_bytes_, payload.size() - begin));
  } catch (const gloo::Exception&) {
    throw ChannelLost(kClosed);
  }
}

/// gloo may forget a send of a connection that breaks, which is then never finished nor failed: so the thread ends the
/// wait for it, again and again. A send that the peer has received was finished before the end of the connection was
/// seen; that an aborted wait hides it is why a second one follows.
void TcpChannel::wait_until_sent(gloo::transport::UnboundBuffer& buffer, std::chrono::milliseconds limit) const {
  if (buffer.waitSend(nullptr, limit)) return;
  if (!is_lost_) throw ChannelLost("this rank aborted");
  if (!buffer.waitSend(nullptr, limit)) throw ChannelLost(kClosed);
}

bool TcpChannel::flush(std::chrono::milliseconds limit) {
  const auto begun = std::chrono::steady_clock::now();
  try {
    for (; first_unsent_ > 0; --first_unsent_) wait_until_sent(*first_buffer_, limit);
    for (; chunks_unsent_ > 0; --chunks_unsent_) wait_until_sent(*payload(), limit);
  } catch (const gloo::Exception&) {
    if (std::chrono::steady_clock::now() - begun >= limit) return false;
    throw ChannelLost(kClosed);
  }
  const MutexLock lock(payload_mutex_);
  payload_buffer_.reset();
  return true;
}

gloo::transport::UnboundBuffer* TcpChannel::payload() {
  const MutexLock lock(payload_mutex_);
  return payload_buffer_.get();
}

void TcpChannel::abort() noexcept {
  const MutexLock lock(payload_mutex_);
  first_buffer_->abortWaitSend();
  if (payload_buffer_) payload_buffer_->abortWaitSend();
}

bool TcpChannel::arrived() {
  const bool is_lost = is_lost_;  // before the count: what came before the end is still read
  if (arrived_ > read_) return true;
  if (is_lost) throw ChannelLost(kClosed);
  return false;
}

void TcpChannel::next_chunk() {
  const Inbound& done = inbound_[read_ % kInbound];
  ++read_;
  at_ = 0;
  left_of_chunk_ = std::min(chunk_bytes_, to_read_);
  try {
    done.buffer->recv(peer_, kDataSlot);
  } catch (const gloo::Exception&) {
    // The connection is closed. That matters only if more is to come: the thread notices as well, and arrived() tells.
  }
}

const MessageHeader* TcpChannel::header() {
  if (!arrived()) return nullptr;
  return reinterpret_cast<const MessageHeader*>(inbound_[read_ % kInbound].memory.get());
}

void TcpChannel::accept() {
  to_read_ = static_cast<size_t>(header()->bytes);
  at_ = sizeof(MessageHeader);
  left_of_chunk_ = to_read_;
  if (to_read_ == 0 || to_read_ > kWithHeader) next_chunk();
}

std::span<const std::byte> TcpChannel::readable() {
  if (to_read_ == 0 || !arrived()) return {};
  return {inbound_[read_ % kInbound].memory.get() + at_, left_of_chunk_};
}

void TcpChannel::consume(size_t bytes) {
  at_ += bytes;
  to_read_ -= bytes;
  left_of_chunk_ -= bytes;
  if (left_of_chunk_ == 0) next_chunk();
}

const Notice* TcpChannel::check_peer() {
  if (!is_lost_) return nullptr;
  try {
    // Comes back at once: the connection is closed, so the notice is there or will never be.
    return seen_buffer_->waitRecv(nullptr, kForever) ? &seen_ : nullptr;
  } catch (const std::exception&) {
    throw ChannelLost(kClosed);
  }
}

void TcpChannel::leave(const Notice& notice) noexcept {
  if (is_lost_) return;
  try {
    left_ = notice;
    left_buffer_->send(peer_, kNoticeSlot);
  } catch (const std::exception&) {  // the peer is gone: it need not be told
  }
}

}  // namespace trainyard::comm
