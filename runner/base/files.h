#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "common/unique_fd.h"

namespace trainyard {

/// A whole file mapped read-only. Pages come in when touched, so a rank that reads a slice pays for the slice.
/// Invariant: bytes() stays valid as long as this object. Moving keeps the address.
class MappedFile {
 public:
  /// Throws InputError, naming the path and the system's reason, where the file cannot be opened or is no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Reads a whole file of at most `limit_bytes`. Throws InputError (path and reason) otherwise.
std::string read_file(const std::filesystem::path& path, size_t limit_bytes = size_t{1} << 30);

/// Replaces `path` by `content`, whole or not at all: temporary name beside it, fsync, rename, fsync of the folder.
/// Throws std::filesystem::filesystem_error with the system's reason; the old file is then untouched.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Makes what was renamed or created in `folder` survive a power cut. Throws std::filesystem::filesystem_error.
void sync_folder(const std::filesystem::path& folder);

}  // namespace trainyard
