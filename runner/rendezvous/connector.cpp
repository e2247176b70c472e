#include "rendezvous/connector.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "rendezvous/session.h"
#include "rendezvous/sockets.h"

namespace trainyard::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds kConnectTimeout = 5s;  // to one address: a firewall that drops packets answers never
constexpr milliseconds kGreetingTimeout = 10s;
constexpr milliseconds kLastAttempt = 1s;
constexpr milliseconds kFirstDelay = 100ms, kLastDelay = 5s;
constexpr milliseconds kQuiet = 1s;  // ranks of one start are up within it: no line for that
constexpr milliseconds kBetweenLines = 10s;

struct Attempt {
  UniqueFd socket;  ///< valid: proved on both sides
  std::string reason;
  std::optional<Refusal::Reason> refusal;
};

bool wait_for(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd poll{.fd = socket, .events = events, .revents = 0};
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    const int count = ::poll(&poll, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (count >= 0 || errno != EINTR) return count > 0;
  }
}

void bind_to(int socket, int family, const std::string& source) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  // The rule says nothing of the other family; a failing bind would only hide the reason that connect() then gives.
  if (family == AF_INET && ::inet_pton(AF_INET, source.c_str(), &v4.sin_addr) == 1) {
    static_cast<void>(::bind(socket, reinterpret_cast<sockaddr*>(&v4), sizeof v4));
  } else if (family == AF_INET6 && ::inet_pton(AF_INET6, source.c_str(), &v6.sin6_addr) == 1) {
    static_cast<void>(::bind(socket, reinterpret_cast<sockaddr*>(&v6), sizeof v6));
  }
}

Attempt connect_to(const Address& address, const ClientSettings& settings, Clock::time_point deadline) {
  Attempt attempt;
  UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // No later attempt of this process finds a descriptor.
  if (!socket.valid() && errno == EMFILE) throw std::system_error(errno, std::system_category(), "socket");
  if (!socket.valid()) return attempt.reason = reason_of(errno), std::move(attempt);
  make_prompt(socket.get());
  if (settings.source && !address.is_loopback()) bind_to(socket.get(), address.family(), *settings.source);
  int error = ::connect(socket.get(), address.get(), address.length) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!wait_for(socket.get(), POLLOUT, std::min(deadline, Clock::now() + kConnectTimeout)))
      error = ETIMEDOUT;
    else if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
      error = errno;
  }
  if (error != 0)
    attempt.reason = reason_of(error);
  else
    attempt.socket = std::move(socket);
  return attempt;
}

bool send_all(int socket, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0)
      bytes.remove_prefix(static_cast<size_t>(count));
    else if (errno == EAGAIN ? !wait_for(socket, POLLOUT, deadline) : errno != EINTR)
      return false;
  }
  return true;
}

/// Nothing where both sides are proved; else why not.
Attempt greet(UniqueFd socket, const ClientSettings& settings, Clock::time_point deadline) {
  Attempt failed;
  ClientGreeting greeting(settings.credentials, fresh_nonce());
  std::string output = greeting.hello();
  std::array<char, kMaxGreetingBytes> bytes;
  while (!greeting.is_welcome()) {
    if (!send_all(socket.get(), output, deadline)) return failed.reason = reason_of(errno), std::move(failed);
    if (!wait_for(socket.get(), POLLIN, deadline))
      return failed.reason = "what listens there does not greet", std::move(failed);
    const ssize_t count = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0)
      return failed.reason = count == 0 ? "it closed the connection" : reason_of(errno), std::move(failed);
    output = greeting.receive({bytes.data(), static_cast<size_t>(count)});
    if (greeting.refusal()) {
      failed.reason = greeting.refusal()->text;
      failed.refusal = greeting.refusal()->reason;
      return failed;
    }
  }
  failed.socket = std::move(socket);
  return failed;
}

Attempt attempt_once(const ClientSettings& settings, Clock::time_point deadline) {
  Attempt attempt;
  const Resolved resolved = resolve(settings.master);
  if (resolved.addresses.empty())
    return attempt.reason = "its name does not resolve: " + resolved.error, std::move(attempt);
  for (const Address& address : resolved.addresses) {
    attempt = connect_to(address, settings, deadline);
    if (!attempt.socket.valid()) continue;
    try {
      attempt = greet(std::move(attempt.socket), settings, std::min(deadline, Clock::now() + kGreetingTimeout));
    } catch (const ProtocolError& error) {
      attempt = {.socket = {},
                 .reason = fmt::format("what listens there is no rendezvous store: {}", error.what()),
                 .refusal = {}};
    }
    if (attempt.socket.valid() || attempt.refusal) break;
  }
  return attempt;
}

/// Waits in short pieces, so that SIGTERM is heard.
void pause(milliseconds duration, const ClientSettings& settings) {
  const auto end = Clock::now() + duration;
  for (;;) {
    if (settings.interrupted && settings.interrupted()) {
      throw TerminatedError(fmt::format("asked to stop while waiting for the master {}", settings.master.text()));
    }
    const auto left = end - Clock::now();
    if (left <= 0ms) return;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, 100ms));
  }
}

/// Throws where a later attempt would be refused again. `since`: when the refusals in a row began; moved here.
void judge_refusal(const Attempt& attempt, const ClientSettings& settings, Clock::time_point& since) {
  using Reason = Refusal::Reason;
  const auto now = Clock::now();
  since = attempt.refusal ? std::min(since, now) : Clock::time_point::max();
  if (!attempt.refusal || *attempt.refusal == Reason::NewerGeneration)
    return;                                      // this generation's master is still to come
  if (*attempt.refusal == Reason::OlderRestart)  // its launcher starts it again, with the number of the others
    throw PeerError(fmt::format("the ranks at {} were started again: {}", settings.master.text(), attempt.reason));
  if (*attempt.refusal != Reason::OlderGeneration && now - since < settings.refusal_grace) return;
  throw InputError(
      fmt::format("the rendezvous store at {} refuses this rank: {}", settings.master.text(), attempt.reason));
}

}  // namespace

UniqueFd connect_to_store(const ClientSettings& settings) {
  const auto begun = Clock::now();
  const auto deadline = begun + settings.timeout;
  std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<double> jitter(0.5, 1.0);  // a thousand ranks must not knock in step
  auto refused_since = Clock::time_point::max();
  auto next_line = begun + kQuiet;
  for (milliseconds delay = kFirstDelay;; delay = std::min(delay * 2, kLastDelay)) {
    // An attempt is let finish a little past the deadline: cut short, its reason would hide the real one.
    Attempt attempt = attempt_once(settings, std::max(deadline, Clock::now() + kLastAttempt));
    if (attempt.socket.valid()) return std::move(attempt.socket);
    judge_refusal(attempt, settings, refused_since);
    const auto now = Clock::now();
    if (now + delay / 2 >= deadline) {
      throw PeerError(
          fmt::format("the master {} was not reached within {}: {}; see that pod's log, or raise rendezvous.timeout",
                      settings.master.text(), human_duration(settings.timeout), attempt.reason));
    }
    if (now >= next_line) {
      spdlog::info("rendezvous: waiting for the master {} ({}), for {} at most", settings.master.text(), attempt.reason,
                   human_duration(settings.timeout));
      next_line = now + kBetweenLines;
    }
    pause(std::chrono::duration_cast<milliseconds>(delay * jitter(random)), settings);
  }
}

}  // namespace trainyard::rendezvous
