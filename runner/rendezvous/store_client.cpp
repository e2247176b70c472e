#include "rendezvous/store_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::rendezvous {
namespace {

using std::chrono::milliseconds;

/// A time for poll(): at most a minute, after which the caller looks again.
int poll_milliseconds(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

Request request_of(Operation operation, const std::string& key) {
  Request request;
  request.operation = operation;
  request.keys = {key};
  return request;
}

}  // namespace

StoreClient::StoreClient(ClientSettings settings)
    : settings_(std::move(settings)), socket_(connect_to_store(settings_)) {}

void StoreClient::set(const std::string& key, const std::string& value) {
  Request request = request_of(Operation::Set, key);
  request.value = value;
  call(std::move(request), {});
}

std::string StoreClient::claim(const std::string& key, const std::string& value) {
  Request request = request_of(Operation::Claim, key);
  request.value = value;
  return std::move(call(std::move(request), {}).values.at(0));
}

std::optional<std::string> StoreClient::get(const std::string& key) {
  Reply reply = call(request_of(Operation::Get, key), {});
  if (reply.status == Reply::Status::Absent) return std::nullopt;
  return std::move(reply.values.at(0));
}

int64_t StoreClient::add(const std::string& key, int64_t delta) {
  Request request = request_of(Operation::Add, key);
  request.number = delta;
  return parse_int(call(std::move(request), {}).values.at(0)).value();
}

std::string StoreClient::compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                                         const std::string& desired) {
  Request request = request_of(Operation::CompareAndSet, key);
  request.value = desired;
  request.expected = expected;
  return std::move(call(std::move(request), {}).values.at(0));
}

bool StoreClient::erase(const std::string& key) {
  return call(request_of(Operation::Erase, key), {}).status == Reply::Status::Done;
}

Waited StoreClient::try_wait(std::span<const std::string> keys, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  Waited waited;
  while (!keys.empty()) {
    Request request;
    request.operation = Operation::Wait;
    // One request holds so many keys.
    for (size_t bytes = 0; !keys.empty() && bytes + keys.front().size() < kMaxRequestBytes / 2;
         keys = keys.subspan(1)) {
      if (keys.front().size() > kMaxKeyBytes)
        throw std::invalid_argument(fmt::format("a key of {} bytes", keys.front().size()));
      bytes += keys.front().size() + sizeof(uint32_t);
      request.keys.push_back(keys.front());
    }
    const auto left = std::max(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds(0));
    request.number = left.count();
    Reply reply = call(std::move(request), left);
    std::vector<std::string>& into = reply.status == Reply::Status::Missing ? waited.missing : waited.values;
    std::ranges::move(reply.values, std::back_inserter(into));
  }
  if (!waited.missing.empty()) waited.values.clear();
  return waited;
}

void StoreClient::close() {
  const MutexLock lock(mutex_);
  lose("this rank closed its connection");
}

/// Sends and awaits the answer, which the store may hold back for `patience`.
Reply StoreClient::call(Request request, milliseconds patience) {
  const auto deadline = Clock::now() + patience + settings_.reply_timeout;
  const MutexLock lock(mutex_);
  request.id = next_id_++;
  pending_[request.id];
  {
    const MutexUnlock unlocked(mutex_);
    send(request, deadline);
  }
  Reply reply = await(request.id, deadline);
  if (reply.status == Reply::Status::Refused) throw std::invalid_argument("rendezvous store: " + reply.values.at(0));
  return reply;
}

Reply StoreClient::await(uint32_t id, Clock::time_point deadline) {
  for (;;) {
    if (pending_.at(id)) return std::move(*pending_.extract(id).mapped());
    if (!lost_.empty()) {
      pending_.erase(id);
      throw PeerError(fmt::format("lost the master {}: {}; see that pod's log", settings_.master.text(), lost_));
    }
    if (Clock::now() >= deadline) {
      lose(fmt::format("its store did not answer within {}", human_duration(settings_.reply_timeout)));
    } else if (reading_) {
      changed_.wait_until(mutex_, deadline);
    } else {
      reading_ = true;
      {
        const MutexUnlock unlocked(mutex_);
        read_some(deadline);
      }
      reading_ = false;
      changed_.notify_all();  // who waits and has no answer yet reads next
    }
  }
}

/// Failures are kept in lost_, where await() finds them.
void StoreClient::send(const Request& request, Clock::time_point deadline) {
  const std::string bytes = frame(encode(request));
  std::string_view rest = bytes;
  const MutexLock sending(sending_);
  while (!rest.empty()) {
    const ssize_t count = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      rest.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    pollfd poll{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    if (errno == EAGAIN && (::poll(&poll, 1, poll_milliseconds(deadline)) > 0 || Clock::now() < deadline)) continue;
    const std::string why = errno == EAGAIN ? "its store takes no more requests" : reason_of(errno);
    const MutexLock lock(mutex_);
    return lose(why);
  }
}

/// Reads what has come by the deadline and hands out the answers. Without mutex_ at the socket, as that may take long.
void StoreClient::read_some(Clock::time_point deadline) {
  std::string why;
  std::vector<Reply> replies;
  pollfd poll{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&poll, 1, poll_milliseconds(deadline)) > 0) {
    std::array<char, size_t{64} << 10> bytes;
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count == 0)
      why = "it closed the connection";
    else if (count < 0 && errno != EAGAIN && errno != EINTR)
      why = reason_of(errno);
    else if (count > 0)
      try {
        frames_.feed({bytes.data(), static_cast<size_t>(count)});
        while (const auto body = frames_.next()) replies.push_back(parse_reply(*body));
      } catch (const ProtocolError& error) {
        why = fmt::format("its store sent a garbled reply: {}", error.what());
      }
  }
  const MutexLock lock(mutex_);
  for (Reply& reply : replies) {
    const auto found = pending_.find(reply.id);
    if (found != pending_.end()) found->second = std::move(reply);
  }
  if (!why.empty()) lose(why);
}

void StoreClient::lose(const std::string& why) {
  if (!lost_.empty()) return;
  lost_ = why;
  static_cast<void>(::shutdown(socket_.get(), SHUT_RDWR));  // wakes the thread that reads
  changed_.notify_all();
}

}  // namespace trainyard::rendezvous
