#pragma once

#include <filesystem>
#include <string>

#include "base/files.h"

namespace trainyard::launch {

/// A folder for what the ranks say in their termination logs: in `parent`, locked while it lives, and removed at the end.
/// What launchers that were killed have left there, which nobody holds a lock on, goes first. Throws InputError where no
/// folder can be made.
class ErrorFolder {
 public:
  ErrorFolder();  ///< in TMPDIR
  explicit ErrorFolder(const std::filesystem::path& parent);
  ~ErrorFolder();
  ErrorFolder(const ErrorFolder&) = delete;
  ErrorFolder& operator=(const ErrorFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file_of(int local_rank) const;
  /// Leaves it empty: the file must be there to be written to, and says nothing of an earlier start.
  [[nodiscard]] std::string empty_file_of(int local_rank) const;

 private:
  std::filesystem::path path_;
  UniqueFd lock_;  ///< the kernel gives it up with the process, however that ends
};

}  // namespace trainyard::launch
