#include "kube/curl_multi.h"

#include <signal.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trainyard::kube {
namespace {

// Streams of one connection before another is opened; the server's own limit (100 to 250) comes first.
constexpr long kStreamsPerConnection = 250;
// Only a server without HTTP/2 gets near it.
constexpr long kMaxConnections = 64;

CURLM* new_multi() {
  static const CURLcode initialised = [] {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets whose other end may be gone
    return curl_global_init(CURL_GLOBAL_DEFAULT);
  }();
  CURLM* const multi = initialised == CURLE_OK ? curl_multi_init() : nullptr;
  if (!multi) throw std::runtime_error("libcurl cannot be initialised");
  return multi;
}

}  // namespace

CurlMulti::CurlMulti(EventLoop& loop) : loop_(loop), multi_(new_multi()) {
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, socket_callback);
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, timer_callback);
  curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  curl_multi_setopt(multi_.get(), CURLMOPT_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  curl_multi_setopt(multi_.get(), CURLMOPT_MAX_HOST_CONNECTIONS, kMaxConnections);
}

CurlMulti::~CurlMulti() {
  for (const auto& [id, transfer] : transfers_) curl_multi_remove_handle(multi_.get(), transfer->handle());
  multi_.reset();
  for (const curl_socket_t socket : sockets_) loop_.unwatch(socket);
  loop_.cancel(timer_);
}

void CurlMulti::start(std::unique_ptr<CurlTransfer> transfer) {
  const uint64_t id = transfer->id();
  transfer->on_received = [this, id] { with_data_.push_back(id); };
  CURL* const handle = transfer->handle();
  const auto stall = transfer->stall();
  transfers_.emplace(id, std::move(transfer));
  if (const CURLMcode code = curl_multi_add_handle(multi_.get(), handle); code != CURLM_OK)
    throw std::runtime_error(std::string("libcurl: ") + curl_multi_strerror(code));
  if (stall.count() > 0) watch_for_stall(id, stall);
}

bool CurlMulti::cancel(uint64_t id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return false;
  curl_multi_remove_handle(multi_.get(), found->second->handle());
  transfers_.erase(found);
  return true;
}

void CurlMulti::abandon(const std::string& why) {
  auto abandoned = std::move(transfers_);
  transfers_.clear();
  for (const auto& [id, transfer] : abandoned) curl_multi_remove_handle(multi_.get(), transfer->handle());
  for (const auto& [id, transfer] : abandoned) {
    Outcome outcome = transfer->outcome(CURLE_RECV_ERROR);
    outcome.message = why;
    transfer->done(std::move(outcome));
  }
}

void CurlMulti::act(curl_socket_t socket, int bits) {
  int running = 0;
  curl_multi_socket_action(multi_.get(), socket, bits, &running);
  deliver();
}

/// Data first: the end of a stream comes after all that it had.
void CurlMulti::deliver() {
  while (!with_data_.empty()) {
    for (const uint64_t id : std::exchange(with_data_, {})) {
      const auto found = transfers_.find(id);
      if (found == transfers_.end()) continue;
      last_heard_ = EventLoop::now();
      const auto on_data = found->second->on_data;  // a copy: the call may end the transfer
      on_data(found->second->take_received());
    }
  }
  finish_completed();
}

void CurlMulti::finish_completed() {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* self = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    finish(static_cast<CurlTransfer*>(self)->id(), message->data.result);
  }
}

void CurlMulti::finish(uint64_t id, CURLcode code) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  const auto transfer = std::move(found->second);
  transfers_.erase(found);
  Outcome outcome = transfer->outcome(code);
  curl_multi_remove_handle(multi_.get(), transfer->handle());
  last_heard_ = std::max(last_heard_, transfer->last_heard());
  const Trouble trouble = outcome.trouble;
  transfer->done(std::move(outcome));
  if (on_finished) on_finished(trouble, transfer->started());
}

void CurlMulti::watch_for_stall(uint64_t id, EventLoop::Clock::duration wait) {
  loop_.after(wait, alive_.guard([this, id] {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) return;
    const auto quiet = EventLoop::now() - found->second->last_heard();
    if (quiet >= found->second->stall()) return finish(id, CURLE_OPERATION_TIMEDOUT);
    watch_for_stall(id, found->second->stall() - quiet);
  }));
}

int CurlMulti::socket_callback(CURL*, curl_socket_t socket, int what, void* self, void*) {
  auto& multi = *static_cast<CurlMulti*>(self);
  if (what == CURL_POLL_REMOVE) {
    multi.sockets_.erase(socket);
    multi.loop_.unwatch(socket);
    return 0;
  }
  const unsigned interest = ((what & CURL_POLL_IN) != 0 ? EventLoop::Readable : 0U) |
                            ((what & CURL_POLL_OUT) != 0 ? EventLoop::Writable : 0U);
  multi.sockets_.insert(socket);
  multi.loop_.watch(socket, interest, multi.alive_.guard([&multi, socket](unsigned ready) {
    multi.act(socket, ((ready & EventLoop::Readable) != 0 ? CURL_CSELECT_IN : 0) |
                          ((ready & EventLoop::Writable) != 0 ? CURL_CSELECT_OUT : 0));
  }));
  return 0;
}

int CurlMulti::timer_callback(CURLM*, long milliseconds, void* self) {
  auto& multi = *static_cast<CurlMulti*>(self);
  multi.loop_.cancel(multi.timer_);
  multi.timer_ = EventLoop::TimerId::None;
  if (milliseconds < 0) return 0;
  multi.timer_ = multi.loop_.after(std::chrono::milliseconds(milliseconds), multi.alive_.guard([&multi] {
    multi.timer_ = EventLoop::TimerId::None;
    multi.act(CURL_SOCKET_TIMEOUT, 0);
  }));
  return 0;
}

}  // namespace trainyard::kube
