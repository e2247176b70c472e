#include "checkpoint/torch_archive.h"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "checkpoint/pickle.h"

namespace trainyard::checkpoint {
namespace {

/// An entry of a zip archive that is stored as it is.
struct ZipEntry {
  uint64_t offset = 0, bytes = 0;  ///< in the file
};

constexpr uint64_t kMaxPickleBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxEntries = 10'000'000;

struct StorageType {
  const char* name;
  const char* dtype;
  uint64_t bytes;
};
constexpr std::array kStorageTypes{StorageType{"FloatStorage", "F32", 4}, StorageType{"BFloat16Storage", "BF16", 2},
                                   StorageType{"HalfStorage", "F16", 2},  StorageType{"DoubleStorage", "F64", 8},
                                   StorageType{"LongStorage", "I64", 8},  StorageType{"IntStorage", "I32", 4},
                                   StorageType{"ByteStorage", "U8", 1},   StorageType{"BoolStorage", "BOOL", 1}};

struct CloseZip {
  void operator()(void* file) const noexcept { unzClose(file); }
};

/// Some bytes of a file, as minizip reads them.
class Window {
 public:
  Window(const FileSource& file, ByteRange range) : file_(file), range_(range) {}

  /// It must outlive what is opened.
  [[nodiscard]] std::unique_ptr<void, CloseZip> open_zip() {
    zlib_filefunc64_def functions{};
    functions.zopen64_file = [](voidpf self, const void*, int) -> voidpf { return self; };
    functions.zread_file = [](voidpf, voidpf self, void* into, uLong bytes) { return of(self).read(into, bytes); };
    functions.ztell64_file = [](voidpf, voidpf self) -> ZPOS64_T { return of(self).at_; };
    functions.zseek64_file = [](voidpf, voidpf self, ZPOS64_T by, int from) -> long { return of(self).seek(by, from); };
    functions.zclose_file = [](voidpf, voidpf) { return 0; };
    functions.zerror_file = [](voidpf, voidpf) { return 0; };
    functions.opaque = this;
    return std::unique_ptr<void, CloseZip>(unzOpen2_64("", &functions));
  }

 private:
  static Window& of(voidpf self) { return *static_cast<Window*>(self); }

  /// An error must not pass through minizip, which is C: nothing is read then, and the archive counts as damaged.
  uLong read(void* into, uLong bytes) noexcept {
    const uint64_t taken = std::min<uint64_t>(bytes, range_.bytes - at_);
    try {
      file_.read(range_.begin + at_, {static_cast<std::byte*>(into), taken});
    } catch (const InputError&) {
      return 0;
    }
    at_ += taken;
    return taken;
  }
  long seek(uint64_t by, int from) noexcept {
    const uint64_t base = from == ZLIB_FILEFUNC_SEEK_SET ? 0 : from == ZLIB_FILEFUNC_SEEK_CUR ? at_ : range_.bytes;
    if (by > range_.bytes - std::min(base, range_.bytes)) return -1;
    at_ = base + by;
    return 0;
  }

  const FileSource& file_;
  ByteRange range_;
  uint64_t at_ = 0;
};

const StorageType& type_named(const std::string& name, const std::string& where) {
  const auto found = std::ranges::find_if(kStorageTypes, [&](const StorageType& each) { return each.name == name; });
  if (found == kStorageTypes.end())
    throw InputError(fmt::format("{}: a {}, of which no tensor is read here", where, name));
  return *found;
}

/// The elements that a tensor of this shape spans; none where the product or a size is no sane number.
std::optional<uint64_t> elements_of(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) return std::nullopt;
  return static_cast<uint64_t>(elements);
}

/// Row after row, as everything else here is.
bool is_contiguous(const PickledTensor& tensor) {
  int64_t stride = 1;
  for (size_t dim = tensor.shape.size(); dim-- > 0;) {
    if (tensor.shape[dim] != 1 && tensor.strides[dim] != stride) return false;
    stride *= std::max<int64_t>(tensor.shape[dim], 1);
  }
  return true;
}

/// Where the archive's pickle is: "<name>/data.pkl".
std::string pickle_entry_of(const std::map<std::string, ZipEntry>& entries, const std::string& where) {
  for (const auto& [name, entry] : entries)
    if (name.ends_with("/data.pkl")) return name;
  throw InputError(fmt::format("{}: a zip archive without data.pkl: not a file of torch.save", where));
}

std::string text_of(const FileSource& source, const ZipEntry& entry) {
  if (entry.bytes > kMaxPickleBytes)
    throw InputError(fmt::format("{}: data.pkl has {} bytes, at most {} are read", source.path().string(), entry.bytes,
                                 kMaxPickleBytes));
  std::string text(entry.bytes, '\0');
  source.read(entry.offset, std::as_writable_bytes(std::span(text)));
  return text;
}

/// The uncompressed entries of a zip archive, by name.
std::map<std::string, ZipEntry> stored_entries(const FileSource& file, ByteRange range, const std::string& where) {
  Window window(file, range);
  const auto zip = window.open_zip();
  unz_global_info64 info{};
  if (!zip || unzGetGlobalInfo64(zip.get(), &info) != UNZ_OK || info.number_entry > kMaxEntries)
    throw InputError(
        fmt::format("{}: not a zip archive, which torch.save has written since PyTorch 1.6; load and save "
                    "it again there, or save it as safetensors",
                    where));
  std::map<std::string, ZipEntry> entries;
  for (int at = unzGoToFirstFile(zip.get()); at == UNZ_OK; at = unzGoToNextFile(zip.get())) {
    unz_file_info64 entry{};
    std::array<char, 4096> name{};
    if (unzGetCurrentFileInfo64(zip.get(), &entry, name.data(), name.size() - 1, nullptr, 0, nullptr, 0) != UNZ_OK ||
        unzOpenCurrentFile2(zip.get(), nullptr, nullptr, 1) != UNZ_OK)
      throw InputError(fmt::format("{}: a damaged zip archive", where));
    const uint64_t offset = unzGetCurrentFileZStreamPos64(zip.get());
    unzCloseCurrentFile(zip.get());
    if (entry.compression_method != 0 || offset > range.bytes || entry.uncompressed_size > range.bytes - offset)
      throw InputError(fmt::format("{}: {} is compressed or cut; torch.save does neither", where, name.data()));
    entries[name.data()] = {range.begin + offset, entry.uncompressed_size};
  }
  return entries;
}

}  // namespace

std::vector<SafetensorsEntry> tensors_in_archive(const FileSource& source, ByteRange range, const std::string& where) {
  const auto entries = stored_entries(source, range, where);
  const std::string pickled = pickle_entry_of(entries, where);
  const std::string folder = pickled.substr(0, pickled.rfind('/') + 1);
  if (const auto order = entries.find(folder + "byteorder");
      order != entries.end() && text_of(source, order->second) != "little")
    throw InputError(fmt::format("{}: its numbers are not little-endian", where));
  std::vector<SafetensorsEntry> tensors;
  const Pickle pickle(text_of(source, entries.at(pickled)), where);
  for (const auto& [name, tensor] : tensors_below(pickle.root(), where)) {
    const StorageType& type = type_named(tensor->storage_type, fmt::format("{}: tensor '{}'", where, name));
    const auto entry = entries.find(folder + "data/" + tensor->storage_key);
    const auto elements = elements_of(tensor->shape);
    if (!elements || tensor->strides.size() != tensor->shape.size() || (*elements > 0 && !is_contiguous(*tensor)))
      throw InputError(
          fmt::format("{}: tensor '{}': shape {} with strides {} is not row after row; save "
                      "tensor.contiguous()",
                      where, name, to_string(tensor->shape), to_string(tensor->strides)));
    const uint64_t held = entry == entries.end() ? 0 : entry->second.bytes / type.bytes;
    const auto offset = static_cast<uint64_t>(tensor->offset);
    if (*elements > 0 && (tensor->offset < 0 || offset > held || *elements > held - offset))
      throw InputError(fmt::format("{}: tensor '{}': {} elements from {} on of a storage that has {}", where, name,
                                   *elements, tensor->offset, held));
    const uint64_t begin = *elements == 0 ? 0 : entry->second.offset + offset * type.bytes;
    tensors.push_back({name, type.dtype, tensor->shape, begin, begin + *elements * type.bytes});
  }
  return tensors;
}

}  // namespace trainyard::checkpoint
