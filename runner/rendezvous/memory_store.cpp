#include "rendezvous/memory_store.h"

#include <algorithm>

namespace trainyard::rendezvous {

void MemoryStore::set(const std::string& key, const std::string& value) {
  const MutexLock lock(mutex_);
  table_.set(key, value);
  changed_.notify_all();
}

std::optional<std::string> MemoryStore::get(const std::string& key) {
  const MutexLock lock(mutex_);
  const std::string* const value = table_.find(key);
  return value ? std::optional(*value) : std::nullopt;
}

Waited MemoryStore::try_wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) {
  const MutexLock lock(mutex_);
  const auto is_there = [&](const std::string& key) REQUIRES(mutex_) { return table_.find(key) != nullptr; };
  Waited waited;
  if (changed_.wait_for(mutex_, timeout, [&] { return std::ranges::all_of(keys, is_there); })) {
    for (const std::string& key : keys) waited.values.push_back(*table_.find(key));
  } else {
    std::ranges::remove_copy_if(keys, std::back_inserter(waited.missing), is_there);
  }
  return waited;
}

int64_t MemoryStore::add(const std::string& key, int64_t delta) {
  const MutexLock lock(mutex_);
  const int64_t sum = table_.add(key, delta);
  changed_.notify_all();
  return sum;
}

std::string MemoryStore::compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                                         const std::string& desired) {
  const MutexLock lock(mutex_);
  std::string after = table_.compare_and_set(key, expected, desired);
  changed_.notify_all();
  return after;
}

bool MemoryStore::erase(const std::string& key) {
  const MutexLock lock(mutex_);
  return table_.erase(key);
}

}  // namespace trainyard::rendezvous
