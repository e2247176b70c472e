#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace trainyard::metrics {

/// Keeps two runs from writing one folder's metrics.jsonl. Held by rank 0 from its start to its end, by a lock on the file
/// `.run` that ends with the process, and by what stands in it. A later start of the same job takes the folder from an
/// earlier one that still lingers, which then writes no more; no other run gets it. One thread.
class FolderClaim {
 public:
  /// Makes the folder. Throws InputError, naming who has it, where another run that lives writes there, or a newer
  /// generation of this job; and where it cannot be written.
  /// `job` tells jobs apart, "" where nothing does; `generation` is that of the gang within its job.
  FolderClaim(const std::filesystem::path& folder, std::string job, int64_t generation);

  /// Whether this run still has it. A warning tells once where it has not.
  [[nodiscard]] bool is_held();

 private:
  void refuse_where_taken(const std::filesystem::path& file, int64_t generation) const;
  void write(int64_t generation);

  std::filesystem::path folder_;
  std::string job_, life_;
  UniqueFd fd_;
  bool is_lost_ = false;
};

}  // namespace trainyard::metrics
