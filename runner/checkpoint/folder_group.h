#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/agreement.h"

namespace trainyard::checkpoint {

/// The ranks that see the same folder of checkpoints: all of them on a shared file system, else those of one host.
/// The first leads: it alone commits, points and removes there.
struct FolderGroup {
  std::vector<int> members;  ///< ascending

  [[nodiscard]] int leader() const { return members.front(); }
};

/// Makes `folder` where it is absent and writes a small file into it. Throws InputError with the system's reason.
void check_writable(const std::filesystem::path& folder);

/// Collective. Finds out who shares this rank's `folder`: rank 0 leaves a file there that the others look for, at most
/// for `patience`; those who don't see it go with the ranks whose folder is the same one of the same machine.
/// Rank 0 logs when the folder is not shared. Throws InputError on every rank where one rank cannot write.
FolderGroup find_group(const std::filesystem::path& folder, Agreement& ranks, std::chrono::milliseconds patience);

/// Eight random hexadecimal digits.
std::string random_name();

}  // namespace trainyard::checkpoint
