#include "data/columns/codecs.h"

#include <brotli/decode.h>
#include <fmt/format.h>
#include <lz4.h>
#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "base/text.h"
#include "data/columns/damage.h"

namespace trainyard::data {
namespace {

/// Each of the functions below fills `into` from the whole of `packed`; false where the two do not fit.
bool unpack_snappy(std::string_view packed, std::span<char> into) {
  size_t size = 0;
  return snappy::GetUncompressedLength(packed.data(), packed.size(), &size) && size == into.size() &&
         snappy::RawUncompress(packed.data(), packed.size(), into.data());
}

bool unpack_gzip(std::string_view packed, std::span<char> into) {
  constexpr int kGzipOrZlib = 15 + 32;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOrZlib) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib does not write there
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(into.size());
  int result = Z_STREAM_END;
  for (; result == Z_STREAM_END && stream.avail_in > 0; result = inflate(&stream, Z_FINISH)) inflateReset(&stream);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  return result == Z_STREAM_END && stream.avail_out == 0;
}

bool unpack_brotli(std::string_view packed, std::span<char> into) {
  size_t size = into.size();
  return BrotliDecoderDecompress(packed.size(), reinterpret_cast<const uint8_t*>(packed.data()), &size,
                                 reinterpret_cast<uint8_t*>(into.data())) == BROTLI_DECODER_RESULT_SUCCESS &&
         size == into.size();
}

bool unpack_zstd(std::string_view packed, std::span<char> into) {
  return ZSTD_decompress(into.data(), into.size(), packed.data(), packed.size()) == into.size();
}

bool unpack_lz4(std::string_view packed, std::span<char> into) {
  return std::cmp_equal(LZ4_decompress_safe(packed.data(), into.data(), static_cast<int>(packed.size()),
                                            static_cast<int>(into.size())),
                        into.size());
}

bool unpack_lz4_frame(std::string_view packed, std::span<char> into) {
  struct Free {
    void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
  };
  LZ4F_dctx* created = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&created, LZ4F_VERSION))) throw std::bad_alloc();
  const std::unique_ptr<LZ4F_dctx, Free> context(created);
  size_t left = 1;  // of the frame; none at its end
  while (left > 0 && !packed.empty()) {
    size_t taken = packed.size(), made = into.size();
    left = LZ4F_decompress(context.get(), into.data(), &made, packed.data(), &taken, nullptr);
    if (LZ4F_isError(left) || (taken == 0 && made == 0)) return false;
    packed.remove_prefix(taken);
    into = into.subspan(made);
  }
  return left == 0 && packed.empty() && into.empty();
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

/// Hadoop's BlockCompressorStream: the size of some content, then blocks behind their sizes until they have given it.
bool unpack_lz4_of_hadoop(std::string_view packed, std::span<char> into) {
  size_t left = 0;  // of the content whose size was given
  while (!packed.empty()) {
    if (packed.size() < 4) return false;
    const size_t size = big_endian(packed);
    packed.remove_prefix(4);
    if (left == 0) {
      left = size;
      if (left > into.size()) return false;
      continue;
    }
    if (size > packed.size()) return false;
    const int made = LZ4_decompress_safe(packed.data(), into.data(), static_cast<int>(size), static_cast<int>(left));
    if (made <= 0) return false;
    packed.remove_prefix(size);
    into = into.subspan(static_cast<size_t>(made));
    left -= static_cast<size_t>(made);
  }
  return left == 0 && into.empty();
}

bool unpack_old_lz4(std::string_view packed, std::span<char> into) {
  return unpack_lz4_of_hadoop(packed, into) || unpack_lz4_frame(packed, into) || unpack_lz4(packed, into);
}

struct Method {
  const char* name;
  bool (*unpack)(std::string_view packed, std::span<char> into);
  size_t largest_ratio;  ///< of the content's size to the block's, by the format
};

Method method_of(Codec codec) {
  switch (codec) {
    case Codec::Snappy: return {"Snappy", unpack_snappy, 22};   // a copy of 64 bytes takes 3
    case Codec::Gzip: return {"gzip", unpack_gzip, 1032};       // a copy of 258 bytes takes 2 bits
    case Codec::Zstd: return {"zstd", unpack_zstd, 32768};      // 128 KiB of one byte take 4
    case Codec::Lz4: return {"LZ4", unpack_lz4, 255};           // a byte makes a copy 255 bytes longer
    case Codec::Lz4Frame:
      return {"LZ4", unpack_lz4_frame, 255};
    case Codec::OldLz4: return {"LZ4", unpack_old_lz4, 255};
    case Codec::Brotli:
    case Codec::None: break;
  }
  return {"Brotli", unpack_brotli, kLargestBlock};  // 16 MiB of one text take some bits
}

}  // namespace

Unpacked unpack(Codec codec, std::string_view packed, size_t size) {
  if (std::max(size, packed.size()) > kLargestBlock)
    throw NotOffered(fmt::format("has {} in one piece, but pieces of up to {} are read; write it in smaller ones",
                                 human_bytes(std::max(size, packed.size())), human_bytes(kLargestBlock)));
  if (codec == Codec::None && size != packed.size())
    throw Damage(fmt::format("{} bytes that are not packed are to give {}", packed.size(), size));
  if (codec == Codec::None) return {.bytes = packed};
  if (size == 0) return {};  // writers differ in what they make of nothing: no bytes at all, or an empty block
  const Method method = method_of(codec);
  if (size / method.largest_ratio > packed.size())
    throw Damage(fmt::format("{} bytes of {} cannot give {}", packed.size(), method.name, size));
  Unpacked content{.memory = std::make_unique_for_overwrite<char[]>(size)};
  content.bytes = {content.memory.get(), size};
  if (!method.unpack(packed, {content.memory.get(), size}))
    throw Damage(fmt::format("{} bytes of {} do not give the {} bytes that they are to give", packed.size(),
                             method.name, size));
  return content;
}

}  // namespace trainyard::data
