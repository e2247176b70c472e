#include "checkpoint/torch_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <minizip/zip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "base/files.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

const char* storage_type_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return "FloatStorage";
    case DType::BFloat16:
      return "BFloat16Storage";
    case DType::Float16:
      return "HalfStorage";
    default:
      throw std::invalid_argument(fmt::format("torch file: no weights are {}", name_of(dtype)));
  }
}

/// Opcodes of Python's pickletools.py, protocol 2: what weights_only takes.
class PickleText {
 public:
  void raw(std::string_view bytes) { text_ += bytes; }
  void name(std::string_view module, std::string_view what) { text_ += fmt::format("c{}\n{}\n", module, what); }
  void text(std::string_view value) {
    text_ += 'X';
    little_endian(value.size(), 4);
    text_ += value;
  }
  void number(int64_t value) {
    const bool is_short = value <= std::numeric_limits<int32_t>::max();
    text_ += is_short ? "J" : "\x8a\x08";
    little_endian(static_cast<uint64_t>(value), is_short ? 4 : 8);
  }
  void tuple(const Shape& numbers) {
    text_ += '(';
    for (const int64_t each : numbers) number(each);
    text_ += 't';
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void little_endian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xFF);
  }
  std::string text_;
};

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;) strides[dim - 1] = strides[dim] * std::max<int64_t>(shape[dim], 1);
  return strides;
}

/// {name: _rebuild_tensor_v2(("storage", type, key, "cpu", elements), 0, shape, strides, False, OrderedDict())}; the
/// key is the tensor's index.
std::string pickle_of(std::span<const RowSource> tensors) {
  PickleText pickle;
  pickle.raw("\x80\x02}(");
  for (size_t index = 0; index < tensors.size(); ++index) {
    const RowSource& tensor = tensors[index];
    pickle.text(tensor.name);
    pickle.name("torch._utils", "_rebuild_tensor_v2");
    pickle.raw("((");
    pickle.text("storage");
    pickle.name("torch", storage_type_of(tensor.dtype));
    pickle.text(std::to_string(index));
    pickle.text("cpu");
    pickle.number(count_of(tensor.shape));
    pickle.raw("tQ");
    pickle.number(0);
    pickle.tuple(tensor.shape);
    pickle.tuple(row_major_strides(tensor.shape));
    pickle.raw("\x89");
    pickle.name("collections", "OrderedDict");
    pickle.raw(")RtR");
  }
  pickle.raw("u.");
  return pickle.text();
}

/// A zip archive of uncompressed entries below "archive/", as PyTorch's reader wants it.
class Archive {
 public:
  explicit Archive(const fs::path& path) : path_(path), zip_(zipOpen64(path.c_str(), APPEND_STATUS_CREATE)) {
    if (!zip_) fail();
  }
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
  void finish() {
    check(zipClose(zip_.release(), nullptr));
    const UniqueFd written(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!written.valid() || ::fsync(written.get()) != 0) fail();
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 30;  // minizip counts in 32 bits
  struct Close {
    void operator()(void* zip) const noexcept { static_cast<void>(zipClose(zip, nullptr)); }
  };
  void check(int result) const {
    if (result != ZIP_OK) fail();
  }
  [[noreturn]] void fail() const {
    throw fs::filesystem_error("cannot write", path_, std::error_code(errno, std::generic_category()));
  }

  fs::path path_;
  std::unique_ptr<void, Close> zip_;
};

}  // namespace

void write_torch_file(const fs::path& path, std::span<const RowSource> tensors) {
  Archive archive(path);
  archive.add("data.pkl", pickle_of(tensors));
  archive.add("byteorder", "little");
  for (size_t index = 0; index < tensors.size(); ++index) {
    archive.begin(fmt::format("data/{}", index));
    for_each_piece(tensors[index], 0, tensors[index].shape[0], [&](const Tensor& piece) {
      archive.write({piece.raw(), piece.bytes()});
    });
    archive.end();
  }
  archive.add("version", "3\n");
  archive.finish();
}

}  // namespace trainyard::checkpoint
