#include "checkpoint/torch_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <minizip/zip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "checkpoint/pickle_text.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path) {
  throw fs::filesystem_error("cannot write", path, std::error_code(errno, std::generic_category()));
}

UniqueFd create(const fs::path& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) fail(path);
  return file;
}

/// A zip archive of uncompressed entries below "archive/", as PyTorch's reader wants it, from a place in a file on.
class Archive {
 public:
  /// `file` and `path` must outlive it.
  Archive(const UniqueFd& file, const fs::path& path, uint64_t begin) : file_(file), path_(path), begin_(begin) {
    zlib_filefunc64_def functions{};
    functions.zopen64_file = [](voidpf self, const void*, int) -> voidpf { return self; };
    functions.zwrite_file = [](voidpf, voidpf self, const void* bytes, uLong count) {
      return of(self).write_at_place(static_cast<const char*>(bytes), count);
    };
    functions.ztell64_file = [](voidpf, voidpf self) -> ZPOS64_T { return of(self).at_; };
    functions.zseek64_file = [](voidpf, voidpf self, ZPOS64_T by, int from) -> long { return of(self).seek(by, from); };
    functions.zclose_file = [](voidpf, voidpf) { return 0; };
    functions.zerror_file = [](voidpf, voidpf) { return 0; };
    functions.opaque = this;
    zip_.reset(zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &functions));
    if (!zip_) fail(path_);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  void begin(const std::string& name) {
    constexpr int kStored = 0, kZip64 = 1;
    const zip_fileinfo undated{};
    check(zipOpenNewFileInZip64(zip_.get(), ("archive/" + name).c_str(), &undated, nullptr, 0, nullptr, 0, nullptr,
                                kStored, 0, kZip64));
  }
  void write(std::span<const std::byte> bytes) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kPiece)))
      check(zipWriteInFileInZip(zip_.get(), bytes.data(), static_cast<unsigned>(std::min(bytes.size(), kPiece))));
  }
  void end() { check(zipCloseFileInZip(zip_.get())); }
  void add(const std::string& name, std::string_view text) {
    begin(name);
    write(std::as_bytes(std::span(text)));
    end();
  }
  void add(const std::string& name, const RowSource& tensor, int64_t first, int64_t count) {
    begin(name);
    for_each_piece(tensor, first, first + count, [&](const Tensor& piece) { write({piece.raw(), piece.bytes()}); });
    end();
  }
  /// Its bytes.
  uint64_t finish() {
    check(zipClose(zip_.release(), nullptr));
    return size_;
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 30;  // minizip counts in 32 bits
  struct Close {
    void operator()(void* zip) const noexcept { static_cast<void>(zipClose(zip, nullptr)); }
  };
  static Archive& of(voidpf self) { return *static_cast<Archive*>(self); }

  uLong write_at_place(const char* bytes, uLong count) noexcept {
    for (uLong written = 0; written < count;) {
      const ssize_t result =
          ::pwrite(file_.get(), bytes + written, count - written, static_cast<off_t>(begin_ + at_ + written));
      if (result < 0 && errno == EINTR) continue;
      if (result <= 0) return written;
      written += static_cast<uLong>(result);
    }
    at_ += count;
    size_ = std::max(size_, at_);
    return count;
  }
  long seek(uint64_t by, int from) noexcept {
    at_ = by + (from == ZLIB_FILEFUNC_SEEK_SET ? 0 : from == ZLIB_FILEFUNC_SEEK_CUR ? at_ : size_);
    return 0;
  }
  void check(int result) const {
    if (result != ZIP_OK) fail(path_);
  }

  const UniqueFd& file_;
  const fs::path& path_;
  uint64_t begin_, at_ = 0, size_ = 0;
  std::unique_ptr<void, Close> zip_;
};

void sync(const UniqueFd& file, const fs::path& path) {
  if (::fsync(file.get()) != 0) fail(path);
}

}  // namespace

void write_torch_file(const fs::path& path, std::span<const RowSource> tensors) {
  const UniqueFd file = create(path);
  Archive archive(file, path, 0);
  PickleText pickle;
  pickle.raw("}(");
  for (size_t index = 0; index < tensors.size(); ++index) {
    pickle.text(tensors[index].name);
    pickle.tensor(std::to_string(index), tensors[index].dtype, tensors[index].shape);
  }
  pickle.raw("u");
  archive.add("data.pkl", pickle.finished());
  archive.add("byteorder", "little");
  for (size_t index = 0; index < tensors.size(); ++index)
    archive.add(fmt::format("data/{}", index), tensors[index], 0, tensors[index].shape[0]);
  archive.add("version", "3\n");
  archive.finish();
  sync(file, path);
}

TorchAppender::TorchAppender(const fs::path& path) : path_(path), file_(create(path)) {}

ByteRange TorchAppender::append(const RowSource& tensor, int64_t begin, int64_t count) {
  Shape shape = tensor.shape;
  shape.at(0) = count;
  PickleText pickle;
  pickle.tensor("0", tensor.dtype, shape);
  Archive archive(file_, path_, bytes_);
  archive.add("data.pkl", pickle.finished());
  archive.add("byteorder", "little");
  archive.add("data/0", tensor, begin, count);
  archive.add("version", "3\n");
  const ByteRange range{bytes_, archive.finish()};
  bytes_ += range.bytes;
  return range;
}

void TorchAppender::finish() {
  sync(file_, path_);
}

}  // namespace trainyard::checkpoint
