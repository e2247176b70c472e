#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/in_order.h"

namespace trainyard::data {

using CacheMagic = std::array<char, 8>;
inline constexpr CacheMagic kAllCount{'T', 'Y', 'T', 'O', 'K', 'E', 'N', '1'};
/// Some ids are no target, and stand as their complement (~id, which is negative): 4 bytes an id.
inline constexpr CacheMagic kSomeCount{'T', 'Y', 'T', 'O', 'K', 'E', 'N', '2'};

/// The head of a cache file; the ids follow, in this machine's byte order.
struct CacheHeader {
  CacheMagic magic = kAllCount;
  uint32_t byte_order = 0x01020304;
  uint32_t bytes_an_id = 4;  ///< 2 or 4
  uint64_t ids = 0;
  uint64_t documents = 0;
  std::array<char, 32> key{};
};
static_assert(sizeof(CacheHeader) == 64);

/// Throws InputError where `file` is not a whole cache file.
CacheHeader read_cache_header(const MappedFile& file);

/// Writes one cache file, beside its final name until commit(). Holds a lock (flock) that the kernel lets go when the
/// process ends, however it ends, so that no lock is ever left behind.
class CacheWriter {
 public:
  /// Waits until no other process or thread writes the same file. None where the file is there by then. What kind of
  /// file it is stands in `header`. Throws PeerError, naming the file, where the other has written nothing for
  /// `timeout`; InputError where the folder cannot be written; TerminatedError where it is asked to stop.
  static std::optional<CacheWriter> begin(const std::filesystem::path& file, const CacheHeader& header,
                                          std::chrono::milliseconds timeout, const Tokenising& how);

  CacheWriter(CacheWriter&&) noexcept = default;
  /// Removes what was written where it was not committed.
  ~CacheWriter();

  /// Throws InputError (no space left and the like).
  void append(std::span<const int32_t> ids);
  void count_documents(uint64_t documents) { header_.documents += documents; }
  /// In place of the key that begin() was given: what the file holds is known once it is written.
  void set_key(const std::string& key);
  /// Makes the file durable, then gives it its name.
  void commit();

  [[nodiscard]] const CacheHeader& header() const { return header_; }

 private:
  CacheWriter(std::filesystem::path file, std::filesystem::path partial, UniqueFd fd)
      : file_(std::move(file)), partial_(std::move(partial)), fd_(std::move(fd)) {}
  void flush();
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path file_, partial_;
  UniqueFd fd_;
  CacheHeader header_;
  std::vector<std::byte> buffer_;
};

}  // namespace trainyard::data
