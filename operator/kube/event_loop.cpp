#include "kube/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace trainyard::kube {
namespace {

constexpr int kEventsAtOnce = 64;

int or_throw(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::system_category(), what);
  return result;
}

unsigned readiness_of(uint32_t events) {
  const bool has_ended = (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
  return ((events & EPOLLIN) != 0 || has_ended ? EventLoop::Readable : 0U) |
         ((events & EPOLLOUT) != 0 || has_ended ? EventLoop::Writable : 0U);
}

epoll_event event_for(int fd, uint32_t serial, unsigned interest) {
  epoll_event event{};
  event.events =
      ((interest & EventLoop::Readable) != 0 ? EPOLLIN : 0U) | ((interest & EventLoop::Writable) != 0 ? EPOLLOUT : 0U);
  event.data.u64 = static_cast<uint64_t>(serial) << 32 | static_cast<uint32_t>(fd);
  return event;
}

}  // namespace

EventLoop::EventLoop()
    : epoll_(or_throw(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wakeup_(or_throw(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  epoll_event event = event_for(wakeup_, 0, Readable);
  or_throw(::epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event), "epoll_ctl");
}

EventLoop::~EventLoop() {
  ::close(wakeup_);
  ::close(epoll_);
}

void EventLoop::run() {
  while (!stopping_.exchange(false)) turn();
}

void EventLoop::turn() {
  wait();
  run_due_timers();
  run_posted();
}

void EventLoop::stop() noexcept {
  stopping_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wakeup_, &one, sizeof one);  // full means that it wakes up anyway
}

void EventLoop::post(Task task) {
  {
    const MutexLock lock(mutex_);
    posted_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wakeup_, &one, sizeof one);
}

EventLoop::TimerId EventLoop::after(Clock::duration duration, Task task) {
  const uint64_t id = ++last_timer_;
  const auto due = now() + std::max(duration, Clock::duration::zero());
  timers_.emplace(TimerKey{due, id}, std::move(task));
  due_.emplace(id, due);
  return TimerId{id};
}

void EventLoop::cancel(TimerId id) {
  const auto found = due_.find(static_cast<uint64_t>(id));
  if (found == due_.end()) return;
  timers_.erase({found->second, found->first});
  due_.erase(found);
}

void EventLoop::watch(int fd, unsigned interest, std::function<void(unsigned)> ready) {
  const auto [place, is_new] = watched_.try_emplace(fd);
  if (is_new) place->second.serial = ++last_serial_;
  place->second.ready = std::make_shared<std::function<void(unsigned)>>(std::move(ready));
  epoll_event event = event_for(fd, place->second.serial, interest);
  // A descriptor that was closed unannounced has left epoll by itself, and another may have its number.
  if (!is_new && (::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) == 0 || errno != ENOENT)) return;
  or_throw(::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void EventLoop::unwatch(int fd) {
  if (watched_.erase(fd) != 0) static_cast<void>(::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr));
}

void EventLoop::wait() {
  std::array<epoll_event, kEventsAtOnce> events{};
  const int count = ::epoll_wait(epoll_, events.data(), kEventsAtOnce, milliseconds_to_next());
  if (count < 0 && errno != EINTR) throw std::system_error(errno, std::system_category(), "epoll_wait");
  for (int index = 0; index < count; ++index) {
    const auto& event = events[static_cast<size_t>(index)];
    const int fd = static_cast<int>(event.data.u64 & 0xffffffffU);
    if (fd == wakeup_) {
      uint64_t value = 0;
      [[maybe_unused]] const auto taken = ::read(wakeup_, &value, sizeof value);
      continue;
    }
    const auto found = watched_.find(fd);
    if (found == watched_.end() || found->second.serial != event.data.u64 >> 32) continue;
    const auto ready = found->second.ready;  // held: it may unwatch itself
    (*ready)(readiness_of(event.events));
  }
}

void EventLoop::run_due_timers() {
  // Only what was due at the beginning: a timer that sets itself anew with no delay lets others have their turn.
  const auto deadline = now();
  const uint64_t newest = last_timer_;
  for (auto next = timers_.begin(); next != timers_.end() && next->first.first <= deadline; next = timers_.begin()) {
    if (next->first.second > newest) break;
    const Task task = std::move(next->second);
    due_.erase(next->first.second);
    timers_.erase(next);
    task();
  }
}

void EventLoop::run_posted() {
  std::vector<Task> tasks;
  {
    const MutexLock lock(mutex_);
    tasks.swap(posted_);
  }
  for (const Task& task : tasks) task();
}

int EventLoop::milliseconds_to_next() const {
  constexpr int kLongest = 60'000;
  if (timers_.empty()) return kLongest;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, kLongest));
}

}  // namespace trainyard::kube
