#pragma once

#include <exception>
#include <optional>
#include <thread>

#include "checkpoint/saver.h"
#include "common/condition_variable.h"
#include "common/mutex.h"

namespace trainyard::checkpoint {

/// Saves behind training: start() returns once the tensors are copied into memory of its own, and one thread writes and
/// commits the copy. From a device they are copied on a stream of its own, beside what the device computes meanwhile,
/// and the thread waits for them; until then nothing may change them that is not behind_copies().
/// The commit goes through the store, so it never meets the collectives of training. One save at a time. Collective as
/// Saver is: every rank calls start() for the same steps in the same order. One thread calls.
class BackgroundSaver {
 public:
  /// `saver` must outlive this; nobody else calls it meanwhile.
  explicit BackgroundSaver(Saver& saver) : saver_(saver) {}
  /// Waits for the save under way; give_up() makes that short.
  ~BackgroundSaver() = default;
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  /// Takes the memory for copies of snapshots such as this one, pages and all: a run that cannot have it fails before
  /// its first step, and the first save is as quick as the others.
  void reserve(const Snapshot& snapshot);

  /// Copies what this rank writes of `snapshot`, and returns. The save before must have been waited for.
  void start(const Snapshot& snapshot);
  /// What the caller's current stream is given from now on runs after the copies of the latest save. Does not wait.
  void behind_copies() const;

  /// What became of the latest save, told once; none while it is being written.
  std::optional<SaveResult> poll();
  /// The same, once it is written; none where there is none to tell of. Throws PeerError where that takes longer than
  /// a save may (SaverOptions::timeout), or where the save did: the store or rank 0 was lost.
  std::optional<SaveResult> wait();

 private:
  void write();
  void stage(const Snapshot& own);
  void stage(const std::vector<Shard>& from, std::vector<Shard>& to);
  [[nodiscard]] std::optional<SaveResult> take() REQUIRES(mutex_);

  Saver& saver_;
  Snapshot staged_;               ///< its tensors are kept from save to save; the thread's while it runs
  Device device_;                 ///< of the tensors
  std::optional<Stream> copies_;  ///< where that is none of the host, as copied_
  std::optional<Event> copied_;
  Mutex mutex_;
  ConditionVariable ended_;
  bool is_writing_ GUARDED_BY(mutex_) = false;
  std::optional<SaveResult> result_ GUARDED_BY(mutex_);
  std::exception_ptr error_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace trainyard::checkpoint
