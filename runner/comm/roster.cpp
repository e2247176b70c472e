#include "comm/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace trainyard::comm {
namespace {

std::string spoken(std::chrono::milliseconds time) {
  if (time.count() % 1000 == 0) return fmt::format("{} s", time.count() / 1000);
  return fmt::format("{} ms", time.count());
}

}  // namespace

void RankPlaces::set(std::vector<std::string> places) {
  const MutexLock lock(mutex_);
  places_ = std::move(places);
}

std::string RankPlaces::of(int number) const {
  const MutexLock lock(mutex_);
  const auto index = static_cast<size_t>(number);
  return index < places_.size() ? places_[index] : "";
}

Roster Roster::of(std::span<const int> members) const {
  Roster part{.places = places};
  part.rank = static_cast<int>(std::ranges::find(members, rank) - members.begin());
  for (const int member : members) {
    part.numbers.push_back(numbers[member]);
    if (!hosts.empty()) part.hosts.push_back(hosts[member]);
  }
  return part;
}

std::string Roster::names(std::span<const int> ranks) const {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", numbers[ranks[i]]);
    const std::string host = hosts.empty() ? "" : hosts[ranks[i]], place = places->of(numbers[ranks[i]]);
    if (!host.empty() || !place.empty())
      text += fmt::format(" ({}{}{})", host, host.empty() || place.empty() ? "" : "; ", place);
  }
  return text;
}

std::string Roster::waited(const Call& call, std::span<const int> missing) const {
  return fmt::format("rank {}: {} waited {} for {}; see that pod's log, or raise comm.timeout", numbers[rank],
                     call.text(), spoken(call.timeout), names(missing));
}

std::string Roster::lost(const Call& call, std::span<const int> gone, const std::string& how) const {
  return fmt::format("rank {}: {} lost {}: {}; see that pod's log", numbers[rank], call.text(), names(gone), how);
}

std::string Roster::abandoned(const Call& call) const {
  return fmt::format("rank {}: {} was abandoned: this rank aborted", numbers[rank], call.text());
}

Roster roster_of_threads(int rank, int world) {
  Roster roster{.rank = rank, .numbers = std::vector<int>(static_cast<size_t>(world)), .hosts = {}};
  std::iota(roster.numbers.begin(), roster.numbers.end(), 0);
  return roster;
}

}  // namespace trainyard::comm
