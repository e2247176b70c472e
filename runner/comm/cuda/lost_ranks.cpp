#include "comm/cuda/lost_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/text.h"
#include "rendezvous/heartbeat.h"

namespace trainyard::comm {
namespace {

std::string stuck_key(const NcclGroup& group, int rank) {
  return fmt::format("{}/stuck/{}", group.prefix(), rank);
}

/// What leave_word() left: who, then for whom.
std::vector<int> ranks_in(const std::string& word) {
  std::vector<int> ranks;
  for (const std::string& number : split(word, ' '))
    if (const auto rank = parse_int(number)) ranks.push_back(static_cast<int>(*rank));
  return ranks;
}

}  // namespace

void LostRanks::tell_stuck(const NcclGroup& group, uint64_t number) {
  store_.set(stuck_key(group, group.roster().rank), fmt::to_string(number));
}

std::vector<int> LostRanks::not_stuck(const NcclGroup& group, uint64_t number) {
  const Roster& roster = group.roster();
  std::vector<int> missing, others;
  for (int rank = 0; rank < roster.world(); ++rank) {
    if (rank == roster.rank) continue;
    others.push_back(rank);
    if (parse_int(store_.get(stuck_key(group, rank)).value_or("")) != static_cast<int64_t>(number))
      missing.push_back(rank);
  }
  return missing.empty() ? others : missing;
}

std::optional<std::string> LostRanks::sentence(const Call& call) {
  if (const auto word = store_.get(word_key_)) {
    const std::vector<int> ranks = ranks_in(*word);
    if (ranks.size() > 1 && ranks.front() != world_.rank)
      return world_.lost(call, std::span(ranks).subspan(1), "so says " + world_.names(std::array{ranks.front()}));
  }
  std::vector<int> gone;
  for (const rendezvous::SilentRank& silent : rendezvous::silent_in(store_))
    if (silent.is_gone && silent.rank != world_.rank) gone.push_back(silent.rank);
  if (gone.empty()) return std::nullopt;
  leave_word(gone);
  return world_.lost(call, gone, "its process ended");
}

void LostRanks::leave_word(const std::vector<int>& ranks) {
  store_.compare_and_set(word_key_, std::nullopt, fmt::format("{} {}", world_.rank, fmt::join(ranks, " ")));
}

}  // namespace trainyard::comm
