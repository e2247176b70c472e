#include "data/unpacking.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/lowercase.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

std::string last_ending(const fs::path& file) {
  return lowercase(file.extension().string());
}

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw InputError(fmt::format("{}: {}", file.string(), what));
}

constexpr const char* kCutOff = "is cut off: its content goes on where the file ends; get it again";

}  // namespace

class Unpacking::Decoder {
 public:
  explicit Decoder(const fs::path& file) : packed_(file) {}
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual size_t read(std::span<char> into) = 0;

 protected:
  const MappedFile packed_;
};

namespace {

class Gzip final : public Unpacking::Decoder {
 public:
  explicit Gzip(const fs::path& file) : Decoder(file), rest_(packed_.text()) {
    constexpr int kWithHeaderOfGzip = 15 + 16;
    if (inflateInit2(&stream_, kWithHeaderOfGzip) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }

  size_t read(std::span<char> into) override {
    size_t filled = 0;
    while (filled < into.size() && !is_over()) {
      const std::string_view taken = rest_.substr(0, kPiece);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(taken.data()));  // zlib does not write there
      stream_.avail_in = static_cast<uInt>(taken.size());
      stream_.next_out = reinterpret_cast<Bytef*>(into.data() + filled);
      const size_t room = std::min(into.size() - filled, kPiece);
      stream_.avail_out = static_cast<uInt>(room);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      rest_.remove_prefix(taken.size() - stream_.avail_in);
      filled += room - stream_.avail_out;
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      is_inside_ = result != Z_STREAM_END;
      if (!is_inside_)
        inflateReset(&stream_);
      else if (result != Z_OK && result != Z_BUF_ERROR)
        fail(packed_.path(), fmt::format("is no whole file of gzip: {}", stream_.msg ? stream_.msg : "damaged"));
    }
    return filled;
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 30;  // zlib counts in 32 bits

  /// Zeros at the end fill a block, as gzip itself takes them.
  bool is_over() {
    if (!is_inside_ && rest_.find_first_not_of('\0') == std::string_view::npos) return true;
    if (rest_.empty()) fail(packed_.path(), kCutOff);
    return false;
  }

  std::string_view rest_;
  z_stream stream_{};
  bool is_inside_ = true;  ///< of a member; there is one at least
};

class Zstd final : public Unpacking::Decoder {
 public:
  explicit Zstd(const fs::path& file) : Decoder(file), in_{packed_.text().data(), packed_.text().size(), 0} {
    if (!context_) throw std::bad_alloc();
  }

  size_t read(std::span<char> into) override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos < out.size) {
      if (in_.pos == in_.size && !is_inside_) break;
      const size_t consumed = in_.pos, made = out.pos;
      const size_t left = ZSTD_decompressStream(context_.get(), &out, &in_);
      if (ZSTD_isError(left))
        fail(packed_.path(), fmt::format("is no whole file of zstd, or needs more memory to unpack than 128 MiB: {}",
                                         ZSTD_getErrorName(left)));
      is_inside_ = left != 0;
      if (in_.pos == consumed && out.pos == made) fail(packed_.path(), kCutOff);
    }
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
  ZSTD_inBuffer in_;
  bool is_inside_ = true;  ///< of a frame; there is one at least
};

}  // namespace

bool is_packed(const fs::path& file) {
  return last_ending(file) == ".gz" || last_ending(file) == ".zst";
}

Unpacking::Unpacking(const fs::path& file) {
  if (last_ending(file) == ".gz")
    decoder_ = std::make_unique<Gzip>(file);
  else
    decoder_ = std::make_unique<Zstd>(file);
}

Unpacking::~Unpacking() = default;
Unpacking::Unpacking(Unpacking&&) noexcept = default;

size_t Unpacking::read(std::span<char> into) {
  return decoder_->read(into);
}

}  // namespace trainyard::data
