#include "controller/work_queue.h"

#include <algorithm>

namespace trainyard::controller {

void WorkQueue::schedule(const std::string& key, Entry& entry) {
  if (entry.due && !entry.is_taken) due_.emplace(std::max(*entry.due, entry.rest), key);
}

void WorkQueue::unschedule(const std::string& key, const Entry& entry) {
  if (!entry.due || entry.is_taken) return;
  const auto [begin, end] = due_.equal_range(std::max(*entry.due, entry.rest));
  due_.erase(std::find_if(begin, end, [&](const auto& one) { return one.second == key; }));
}

void WorkQueue::add_at(const std::string& key, TimePoint time) {
  Entry& entry = entries_[key];
  if (entry.due && *entry.due <= time) return;
  unschedule(key, entry);
  entry.due = time;
  schedule(key, entry);
}

std::optional<std::string> WorkQueue::take(TimePoint now) {
  if (due_.empty() || due_.begin()->first > now) return std::nullopt;
  std::string key = due_.begin()->second;
  due_.erase(due_.begin());
  Entry& entry = entries_[key];
  entry.due.reset();
  entry.is_taken = true;
  return key;
}

void WorkQueue::done(const std::string& key, TimePoint rest) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second.is_taken = false;
  found->second.rest = rest;
  schedule(key, found->second);
}

std::optional<WorkQueue::TimePoint> WorkQueue::next_due() const {
  return due_.empty() ? std::nullopt : std::optional(due_.begin()->first);
}

void WorkQueue::forget(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.is_taken) return;
  unschedule(key, found->second);
  entries_.erase(found);
}

std::chrono::milliseconds rest_after(int failures) {
  using namespace std::chrono_literals;
  if (failures <= 0) return 0ms;
  return std::min<std::chrono::milliseconds>(100ms * (int64_t{1} << std::min(failures - 1, 20)), 60s);
}

}  // namespace trainyard::controller
