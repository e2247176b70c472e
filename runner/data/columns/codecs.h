#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace trainyard::data {

/// How a block of bytes is packed.
enum class Codec : uint8_t {
  None,
  Snappy,
  Gzip,  ///< or zlib, as some writers had it; members that follow one another are one content
  Brotli,
  Zstd,
  Lz4,       ///< a block alone
  Lz4Frame,  ///< with a header, as the program lz4 writes it
  OldLz4,    ///< what writers made of the name LZ4: blocks behind the sizes of Hadoop, a frame, or a block alone
};

/// The content of a block. `bytes` lie in `memory` or, where nothing was packed, where they were.
struct Unpacked {
  std::string_view bytes = {};
  std::unique_ptr<char[]> memory = {};
};

/// A block has no more bytes than this when it is unpacked.
inline constexpr size_t kLargestBlock = size_t{1} << 30;

/// Unpacks a block that has `size` bytes then, of which memory is taken only as they come.
/// Throws Damage where it gives more or fewer or cannot be unpacked, NotOffered where `size` is above kLargestBlock.
Unpacked unpack(Codec codec, std::string_view packed, size_t size);

}  // namespace trainyard::data
