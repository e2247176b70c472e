#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

#include "common/unique_fd.h"

namespace trainyard::web {

/// Holds flock() of a file until it goes, as huggingface_hub's locks do: one process of this machine has it, in Python
/// or here. The file stays. It costs nothing but work done twice where a file system keeps no such locks.
class FileLock {
 public:
  /// Waits for whoever has it, for as long as `progress` changes at least every `patience`.
  /// Throws PeerError, naming the file, where it did not, and InputError where the file cannot be made.
  FileLock(const std::filesystem::path& path, std::chrono::milliseconds patience,
           const std::function<uint64_t()>& progress);

 private:
  UniqueFd fd_;
};

}  // namespace trainyard::web
