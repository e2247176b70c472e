#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"

namespace trainyard::metrics {

/// A file of records that grows at its end and survives a crash and a full disk. One process, one thread.
/// Invariant: up to good_bytes_ the file is whole records; one that could not be written whole is cut off again.
class AppendFile {
 public:
  /// Opens `path`, making its folder and it; what is in it stays until cut(). Throws InputError, which begins with
  /// `setting`, where it cannot be written.
  AppendFile(std::filesystem::path path, const char* setting);

  /// Keeps the first `bytes` only. In one call, so a kill leaves the old length or the new one. Throws InputError.
  void cut(int64_t bytes);
  /// Hands the record to the system at once, so that `tail -f` and a crash lose nothing. A full disk does not stop
  /// training: the first loss is logged as a warning, naming `step`, each record is tried, and the end is logged.
  void append(std::string_view record, int64_t step);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Which records are missing, from when on and why; "" where the latest was written.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  [[noreturn]] void fail(const std::filesystem::path& path, int error) const;

  std::filesystem::path path_;
  const char* setting_;
  UniqueFd fd_;
  int64_t good_bytes_ = 0;
  std::string error_;
};

}  // namespace trainyard::metrics
