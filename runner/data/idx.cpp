#include "data/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace trainyard::data {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;
constexpr uint32_t kUnsignedBytes = 0x08;  // the type, in the third byte of the magic number
constexpr size_t kWord = 4;

struct GzClose {
  void operator()(gzFile_s* file) const noexcept { static_cast<void>(gzclose_r(file)); }
};

std::string gzip_error(gzFile_s* file) {
  int code = 0;
  const char* const text = gzerror(file, &code);
  return code == Z_ERRNO ? std::strerror(errno) : text;
}

/// The content of a file, unpacked where it is packed.
std::string unpacked(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, GzClose> file(gzopen(path.c_str(), "rb"));
  if (!file) throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  std::string content, buffer(size_t{1} << 20, '\0');
  while (true) {
    const int read = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    // What ends too early is read to its end before zlib tells.
    if (int code = Z_OK; read < 0 || (read == 0 && (gzerror(file.get(), &code), code == Z_BUF_ERROR)))
      throw InputError(fmt::format("{}: damaged after {} bytes of content: {}", path.string(), content.size(),
                                   gzip_error(file.get())));
    if (read == 0) return content;
    content.append(buffer, 0, static_cast<size_t>(read));
    if (content.size() > kMostBytes)
      throw InputError(fmt::format("{}: more than {} bytes of content", path.string(), kMostBytes));
  }
}

uint32_t word_at(std::string_view content, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < kWord; ++i) word = word << 8U | static_cast<uint8_t>(content[at + i]);
  return word;
}

}  // namespace

IdxArray parse_idx(std::string_view content, int dimensions, const std::string& name) {
  const size_t header = kWord * (1 + static_cast<size_t>(dimensions));
  const uint32_t magic = kUnsignedBytes << 8U | static_cast<uint32_t>(dimensions);
  if (content.size() >= kWord && word_at(content, 0) != magic)
    throw InputError(
        fmt::format("{}: byte 0: the magic number is 0x{:08x}, but 0x{:08x} (unsigned bytes, {} dimension{}) is needed",
                    name, word_at(content, 0), magic, dimensions, dimensions == 1 ? "" : "s"));
  if (content.size() < header)
    throw InputError(fmt::format("{}: ends at byte {}, inside its header of {} bytes", name, content.size(), header));
  IdxArray array;
  uint64_t end = 1;  // of the values, each size of which is below 2^32: too large ones stop before this overflows
  for (size_t at = kWord; at < header; at += kWord) {
    array.shape.push_back(word_at(content, at));
    end *= word_at(content, at);
    if (end > kMostBytes)
      throw InputError(
          fmt::format("{}: byte {}: a size of {} makes more than {} values", name, at, array.shape.back(), kMostBytes));
  }
  end += header;
  if (content.size() != end)
    throw InputError(fmt::format("{}: ends at byte {}, but its header says {}, which end at byte {}", name,
                                 content.size(), to_string(array.shape), end));
  array.values = content.substr(header);
  return array;
}

IdxArray read_idx(const std::filesystem::path& path, int dimensions) {
  return parse_idx(unpacked(path), dimensions, path.string());
}

}  // namespace trainyard::data
