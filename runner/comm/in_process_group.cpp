#include "comm/in_process_group.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::comm {

std::vector<int> InProcessGroup::missing(uint64_t meeting) const {
  std::vector<int> absent;
  for (int rank = 0; rank < world(); ++rank)
    if (ranks_[rank].meetings < meeting) absent.push_back(rank);
  return absent;
}

std::vector<Post> InProcessGroup::meet(const Roster& roster, const Call& call, const Post& post) {
  const int rank = roster.rank;
  const MutexLock lock(mutex_);
  Member& self = ranks_[rank];
  const uint64_t meeting = ++self.meetings;
  self.posts[meeting % 2] = post;
  self.doing = call.name;
  self.label = call.label;
  changed_.notify_all();

  const auto deadline = std::chrono::steady_clock::now() + call.timeout;
  for (auto absent = missing(meeting); !absent.empty(); absent = missing(meeting)) {
    throw_if_lost(roster, call, absent);
    if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout && !missing(meeting).empty()) {
      if (culprits_.empty()) blame(missing(meeting), fmt::format("rank {} waited in vain", roster.numbers[rank]));
      throw PeerError(roster.waited(call, missing(meeting)));
    }
  }
  check_same(roster, call, post, meeting);
  std::vector<Post> posts;
  for (const Member& member : ranks_) posts.push_back(member.posts[meeting % 2]);
  return posts;
}

void InProcessGroup::throw_if_lost(const Roster& roster, const Call& call, const std::vector<int>& absent) {
  if (ranks_[roster.rank].left) throw PeerError(roster.abandoned(call));
  if (culprits_.empty()) {
    std::vector<int> gone;
    for (const int peer : absent)
      if (ranks_[peer].left) gone.push_back(peer);
    if (!gone.empty()) blame(gone, "its thread is gone");
  }
  if (!culprits_.empty()) throw PeerError(roster.lost(call, culprits_, reason_));
}

void InProcessGroup::blame(std::vector<int> ranks, std::string reason) {
  culprits_ = std::move(ranks);
  reason_ = std::move(reason);
  changed_.notify_all();
}

void InProcessGroup::check_same(const Roster& roster, const Call& call, const Post& post, uint64_t meeting) const {
  for (int peer = 0; peer < world(); ++peer) {
    // One that is further on has been through this check itself.
    const Member& other = ranks_[peer];
    if (other.meetings != meeting) continue;
    const size_t bytes = other.posts[meeting % 2].bytes;
    if (bytes == post.bytes && other.doing == call.name) continue;
    const Call theirs{.name = other.doing, .label = other.label, .timeout = call.timeout};
    throw std::logic_error(
        fmt::format("ranks issue different collectives: rank {} {} ({} bytes), rank {} {} ({} bytes)",
                    roster.numbers[roster.rank], call.text(), post.bytes, roster.numbers[peer], theirs.text(), bytes));
  }
}

void InProcessGroup::leave(int rank) {
  const MutexLock lock(mutex_);
  ranks_[rank].left = true;
  changed_.notify_all();
}

}  // namespace trainyard::comm
