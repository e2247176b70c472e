#include "http/server.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "http/listener.h"

namespace trainyard::http {
namespace {

constexpr std::chrono::seconds kLookInterval{1};  // how late a deadline may be seen
constexpr std::chrono::seconds kDrainTime{30};

}  // namespace

Server::Server(UniqueFd listening, Handler handler, const Limits& limits, std::optional<Identity> identity)
    : listening_(std::move(listening)),
      port_(port_of(listening_.get())),
      handler_(std::move(handler)),
      limits_(limits),
      daemon_(std::make_unique<Daemon>(listening_.get(), handler_, deadlines_, limits_, identity)),
      watcher_([this](const std::stop_token& stop) { watch(stop); }) {}

Server::~Server() = default;

void Server::set_identity(const Identity& identity) {
  auto next = std::make_unique<Daemon>(listening_.get(), handler_, deadlines_, limits_, identity);
  const MutexLock lock(mutex_);
  daemon_->drain();
  draining_.push_back({std::exchange(daemon_, std::move(next)), Deadlines::Clock::now() + kDrainTime});
}

void Server::watch(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  while (!stopping_.wait_for(mutex_, stop, kLookInterval, [&stop] { return stop.stop_requested(); })) {
    const auto now = Deadlines::Clock::now();
    auto drained = take_drained(now);
    const MutexUnlock unlocked(mutex_);
    drained.clear();  // waits for handlers under way
    deadlines_.shut_down_overdue(now);
  }
}

std::vector<Server::Draining> Server::take_drained(Deadlines::Clock::time_point now) {
  const auto begin = std::partition(draining_.begin(), draining_.end(), [now](const Draining& old) {
    return old.until > now && old.daemon->connections() > 0;
  });
  std::vector<Draining> drained(std::make_move_iterator(begin), std::make_move_iterator(draining_.end()));
  draining_.erase(begin, draining_.end());
  return drained;
}

}  // namespace trainyard::http
