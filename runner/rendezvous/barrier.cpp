#include "rendezvous/barrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rendezvous/heartbeat.h"

namespace trainyard::rendezvous {
namespace {

constexpr std::chrono::milliseconds kLookAtStore{500};
// How a barrier ends. The first that is written counts: who has left it cannot be called back.
constexpr const char *kAll = "all", *kCalledOff = "called off";

}  // namespace

Barrier::Barrier(Store& store, std::string name, int rank, int world, std::function<bool()> asked_to_stop)
    : store_(store),
      name_(std::move(name)),
      end_(name_ + "/end"),
      rank_(rank),
      world_(world),
      asked_to_stop_(std::move(asked_to_stop)) {}

std::string Barrier::key_of(int rank) const {
  return fmt::format("{}/{}", name_, rank);
}

void Barrier::end_as(const std::string& word) {
  static_cast<void>(store_.compare_and_set(end_, std::nullopt, word));
}

bool Barrier::is_called_off() {
  if (called_off_) return true;
  const bool is_asked = asked_to_stop_();
  const auto now = std::chrono::steady_clock::now();
  if (!is_asked && now - looked_ < kLookAtStore) return false;
  looked_ = now;
  if (is_asked) end_as(kCalledOff);
  return called_off_ = store_.get(end_) == kCalledOff;
}

Barrier::Met Barrier::come(std::chrono::milliseconds timeout) {
  store_.set(key_of(rank_), "");
  if (store_.add(name_ + "/count", 1) == world_) end_as(kAll);
  const std::vector<std::string> keys{end_};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (auto left = timeout;;) {
    if (asked_to_stop_()) end_as(kCalledOff);
    const Waited waited = wait_for_ranks(store_, keys, std::min(left, kLookAtStore));
    if (waited.missing.empty()) return {.missing = {}, .called_off = waited.values.front() == kCalledOff};
    if (left.count() == 0) break;
    left = std::max(std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()),
                    std::chrono::milliseconds(0));
  }
  Met met;
  for (int each = 0; each < world_; ++each)
    if (!store_.get(key_of(each))) met.missing.push_back(each);
  return met;
}

}  // namespace trainyard::rendezvous
