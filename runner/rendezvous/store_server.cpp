#include "rendezvous/store_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "rendezvous/sockets.h"

namespace trainyard::rendezvous {
namespace {

constexpr ConnectionId kListener = 0, kWake = 1;
constexpr size_t kReadBytes = size_t{64} << 10;     // a turn: one talkative client must not starve the others
constexpr size_t kMaxBuffered = size_t{256} << 20;  // half-sent requests of all clients together
constexpr size_t kPauseReading = size_t{4} << 20;   // unsent answers after which a client must first take these

void check(int result, const char* call) {
  if (result < 0) throw std::system_error(errno, std::system_category(), call);
}

}  // namespace

StoreServer::StoreServer(ServerSettings settings) : settings_(std::move(settings)), engine_(settings_.limits) {
  allow_many_files();
  listener_ = settings_.listener.valid() ? std::move(settings_.listener) : listen_on(settings_.host, settings_.port);
  port_ = local_address(listener_.get()).port();
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  check(epoll_.get(), "epoll_create1");
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  check(wake_.get(), "eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kListener}};
  check(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event), "epoll_ctl");
  event.data.u64 = kWake;
  check(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event), "epoll_ctl");
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

StoreServer::~StoreServer() {
  thread_.request_stop();
  static_cast<void>(::eventfd_write(wake_.get(), 1));
  if (thread_.joinable()) thread_.join();
}

void StoreServer::serve(const std::stop_token& stop) {
  std::array<epoll_event, 256> events;
  while (!stop.stop_requested()) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_milliseconds());
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kListener)
        accept_all();
      else if (events[i].data.u64 != kWake)
        on_event(events[i].data.u64, events[i].events);
    }
    deliver(engine_.expire(std::chrono::steady_clock::now()));
    drop_slow_strangers();
    if (!accepting_) listen_again();
  }
}

int StoreServer::wait_milliseconds() const {
  if (!accepting_) return 100;
  std::optional<TimePoint> next = engine_.next_deadline();
  if (!strangers_.empty()) next = std::min(next.value_or(TimePoint::max()), strangers_.begin()->second);
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

void StoreServer::accept_all() {
  for (;;) {
    Address peer;
    peer.length = sizeof peer.storage;
    UniqueFd socket(::accept4(listener_.get(), peer.get(), &peer.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      // Out of descriptors the listener stays readable for ever: look away for a moment instead of spinning.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        spdlog::warn("rendezvous: the store cannot accept a client ({}); raise the limit on open files (ulimit -n)",
                     reason_of(errno));
        accepting_ = false;
        static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr));
        return;
      }
      if (errno == ECONNABORTED || errno == EINTR) continue;
      return;
    }
    if (connections_.size() >= settings_.max_connections) continue;  // closed at once; a rank tries again
    // A flood of strangers must not shut the ranks out: the oldest goes, and a rank that is slow tries again.
    if (strangers_.size() >= settings_.max_strangers) drop(strangers_.begin()->first, "too many strangers");
    make_prompt(socket.get());
    const ConnectionId id = next_id_++;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) continue;
    ServerSession session(settings_.credentials, fresh_nonce());
    connections_.emplace(id, Connection{std::move(socket), std::move(session), peer.host(), event.events});
    clients_ = connections_.size();
    strangers_.emplace(id, std::chrono::steady_clock::now() + settings_.proof_timeout);
  }
}

void StoreServer::listen_again() {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kListener}};
  accepting_ = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0;
}

void StoreServer::on_event(ConnectionId id, uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;  // dropped earlier in this turn
  Connection& connection = found->second;
  if ((events & EPOLLOUT) && !flush(id, connection)) return;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !receive(id, connection)) return;
}

/// False where the connection is gone.
bool StoreServer::receive(ConnectionId id, Connection& connection) {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = ::recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count <= 0) return drop(id, count == 0 ? "closed" : reason_of(errno)), false;
  const size_t before = connection.session.buffered();
  ServerSession::Step step = connection.session.receive({bytes.data(), static_cast<size_t>(count)});
  buffered_ += connection.session.buffered() - before;
  connection.output += step.output;
  if (connection.session.state() == ServerSession::State::Open) strangers_.erase(id);
  if (step.is_superseded) {
    flush(id, connection);
    return drop_all(), false;
  }
  const TimePoint now = std::chrono::steady_clock::now();
  for (const Request& request : step.requests) deliver(engine_.handle(id, request, now));
  if (!connections_.contains(id)) return false;
  if (!flush(id, connection)) return false;
  if (connection.session.state() == ServerSession::State::Closed) return drop(id, connection.session.reason()), false;
  if (buffered_ > kMaxBuffered) return drop(id, "half-sent requests fill the store's memory"), false;
  return true;
}

void StoreServer::deliver(Answers answers) {
  for (const Answer& answer : answers) {
    const auto found = connections_.find(answer.connection);
    if (found == connections_.end()) continue;
    found->second.output += frame(encode(answer.reply));
    flush(answer.connection, found->second);
  }
}

/// Sends what the kernel takes. False where the connection is gone.
bool StoreServer::flush(ConnectionId id, Connection& connection) {
  while (connection.sent < connection.output.size()) {
    const ssize_t count = ::send(connection.socket.get(), connection.output.data() + connection.sent,
                                 connection.output.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) return drop(id, reason_of(errno)), false;
    if (count < 0) break;
    connection.sent += static_cast<size_t>(count);
  }
  if (connection.sent == connection.output.size()) connection.output.clear(), connection.sent = 0;
  return watch(id, connection);
}

bool StoreServer::watch(ConnectionId id, Connection& connection) {
  const size_t unsent = connection.output.size() - connection.sent;
  const uint32_t events = (unsent > 0 ? EPOLLOUT : 0u) | (unsent < kPauseReading ? EPOLLIN : 0u);
  if (events == connection.events) return true;
  connection.events = events;
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event) == 0) return true;
  return drop(id, reason_of(errno)), false;
}

void StoreServer::drop(ConnectionId id, const std::string& why) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const bool was_stranger = strangers_.erase(id) > 0;
  if (was_stranger && why != "closed")
    spdlog::debug("rendezvous: the store dropped a client from {}: {}", found->second.peer, why);
  buffered_ -= found->second.session.buffered();
  connections_.erase(found);
  clients_ = connections_.size();
  engine_.disconnect(id);
}

void StoreServer::drop_all() {
  spdlog::info("rendezvous: a rank was started again and has come back: this world is over");
  while (!connections_.empty()) drop(connections_.begin()->first, "this world is over");
}

void StoreServer::drop_slow_strangers() {
  const TimePoint now = std::chrono::steady_clock::now();
  while (!strangers_.empty() && strangers_.begin()->second <= now) drop(strangers_.begin()->first, "no proof in time");
}

}  // namespace trainyard::rendezvous
