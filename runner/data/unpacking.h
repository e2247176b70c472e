#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace trainyard::data {

/// Whether a file is packed by gzip or zstd: its last ending, in any case, is .gz or .zst.
bool is_packed(const std::filesystem::path& file);

/// Gives the content of a packed file piece by piece, in bounded memory. What was packed by several calls and joined
/// (members of gzip, frames of zstd) is one content. One thread.
class Unpacking {
 public:
  /// Throws InputError where the file cannot be read.
  explicit Unpacking(const std::filesystem::path& file);
  ~Unpacking();
  Unpacking(Unpacking&&) noexcept;
  Unpacking& operator=(Unpacking&&) = delete;

  /// Fills `into`, or as much of it as the rest of the content does; the number of bytes, 0 at the end.
  /// Throws InputError, naming the file, where it is damaged, is cut off, or is no such file.
  size_t read(std::span<char> into);

  class Decoder;

 private:
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace trainyard::data
