#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/files.h"

namespace trainyard {

/// Where a writer of a file format sends its bytes, in order. Checkpoints put a checksum and, in tests, faults behind
/// it.
class ByteSink {
 public:
  virtual ~ByteSink() = default;  ///< without finish(): the file is not complete and nobody may rely on it
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// Everything written survives a power cut once this has returned. Nothing may be written afterwards.
  virtual void finish() = 0;

  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
};

/// A new file (an existing one is emptied). Throws std::filesystem::filesystem_error, which names the path, how many
/// bytes were in it, and the system's reason (disk full, quota, read-only).
class FileSink : public ByteSink {
 public:
  explicit FileSink(std::filesystem::path path);
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override;
  void finish() override;

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::filesystem::path path_;
  UniqueFd fd_;
  uint64_t written_ = 0;
};

/// A regular file read at given places. Unlike a mapping, a file that is cut or a disk that fails while it is read is
/// an error here and not a SIGBUS, and what was read does not count as this process's memory. Threads may read at once.
class FileSource {
 public:
  /// Throws InputError, naming the path and the system's reason, where the file cannot be opened or is no regular file.
  explicit FileSource(std::filesystem::path path);

  /// Fills `into` from `offset` on. Throws InputError where the file ends before or cannot be read.
  void read(uint64_t offset, std::span<std::byte> into) const;
  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  uint64_t size_ = 0;
};

}  // namespace trainyard
