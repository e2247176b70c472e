#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/backend.h"
#include "comm/roster.h"
#include "common/condition_variable.h"
#include "common/mutex.h"

namespace trainyard::comm {

class InProcessGroup;

/// What a rank shows to the others at a meeting. Borrowed until it has come to the next one.
struct Post {
  const std::byte* data = nullptr;
  size_t bytes = 0;
  const std::shared_ptr<InProcessGroup>* offer = nullptr;
};

/// Where the ranks of one process meet. A collective is a first meeting, at which each shows its tensor, work on what
/// was shown, and a last one, after which it may be taken away. One thread a rank.
class InProcessGroup {
 public:
  explicit InProcessGroup(int world) : world_(world), ranks_(static_cast<size_t>(world)) {}

  [[nodiscard]] int world() const { return world_; }

  /// Brings `roster.rank`, waits for every other, and returns what each shows, by rank. Throws PeerError naming the
  /// ranks that left or did not come within call.timeout; std::logic_error where ranks came for different collectives.
  std::vector<Post> meet(const Roster& roster, const Call& call, const Post& post);

  /// `rank` comes to no more meetings. It may be in one: that throws.
  void leave(int rank);

 private:
  struct Member {
    uint64_t meetings = 0;  ///< that it has come to
    bool left = false;
    std::string doing, label;
    Post posts[2];  ///< of even and odd meetings: a fast rank may be at the next one while a slow one reads
  };
  [[nodiscard]] std::vector<int> missing(uint64_t meeting) const REQUIRES(mutex_);
  void throw_if_lost(const Roster& roster, const Call& call, const std::vector<int>& absent) REQUIRES(mutex_);
  void blame(std::vector<int> ranks, std::string reason) REQUIRES(mutex_);
  void check_same(const Roster& roster, const Call& call, const Post& post, uint64_t meeting) const REQUIRES(mutex_);

  const int world_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Member> ranks_ GUARDED_BY(mutex_);
  // Who failed first and how. One failure ends the whole group, and ranks that end because of it are not to blame.
  std::vector<int> culprits_ GUARDED_BY(mutex_);
  std::string reason_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::comm
