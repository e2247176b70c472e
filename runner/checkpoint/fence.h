#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "checkpoint/naming.h"

namespace trainyard::checkpoint {

/// Whoever may write to a folder of checkpoints.
struct Owner {
  std::string job;         ///< tells jobs apart: a digest of the job's token; "" where it has none
  int64_t generation = 0;  ///< of the gang within its job
  std::string life;        ///< random: this start of it
};

/// Keeps ranks of an earlier life out of a folder. The newest start of a job writes its name into `.generation`, or what
/// Naming::claim() says, so that runs whose checkpoints have other names may share the folder; a
/// commit looks whether its own name still stands there and renames; both hold the lock `.lock` meanwhile. So a rank
/// that was cut off, came back and still believes in its gang is refused at its next commit.
///
/// Where the file system has no locks between hosts (some NFS mounts), or their holder was frozen, one window remains:
/// an old leader that looked, slept, and renames after the new one has claimed. What appears then is a whole checkpoint
/// of the same job, one the new gang could have resumed from, and the new gang's commit of that step replaces it.
class Fence {
 public:
  explicit Fence(std::filesystem::path folder, const Naming& naming = {})
      : folder_(std::move(folder)), claim_(folder_ / naming.claim()) {}

  /// Held while its object lives, where the file system has locks and no frozen process holds it (see above).
  class Lock {
   public:
    explicit Lock(const std::filesystem::path& folder);

   private:
    UniqueFd fd_;
  };

  /// From here on `owner` may commit and nobody else. Throws InputError where a newer generation of the same job has
  /// claimed the folder; std::filesystem::filesystem_error where it cannot be written.
  void claim(const Owner& owner);
  /// Throws InputError, saying who has claimed the folder since.
  void check(const Owner& owner) const;
  /// Takes the claim of `owner` back where nothing but it lies in the folder, and removes the folder. Whoever is fenced
  /// off stays so: a commit needs a claim of its own.
  void withdraw(const Owner& owner);

 private:
  std::filesystem::path folder_, claim_;
};

}  // namespace trainyard::checkpoint
