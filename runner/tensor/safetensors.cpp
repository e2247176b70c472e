#include "tensor/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "tensor/convert.h"

namespace trainyard {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and read as it stands");

constexpr size_t kStagedBytes = size_t{16} << 20;  // at once from a device
constexpr size_t kPieceBytes = size_t{1} << 20;  // of a conversion: fits the second-level cache, hides the read's cost

uint64_t header_bytes_of(const FileSource& source) {
  const std::string where = source.path().string();
  if (source.size() < 8)
    throw InputError(fmt::format("{}: {} bytes, too short for a safetensors file", where, source.size()));
  uint64_t length = 0;
  source.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxSafetensorsHeaderBytes)
    throw InputError(fmt::format("{}: a header of {} bytes, at most {} are allowed; not a safetensors file?", where,
                                 length, kMaxSafetensorsHeaderBytes));
  if (length > source.size() - 8)
    throw InputError(fmt::format("{}: a header of {} bytes in a file of {}; the file is truncated or damaged", where,
                                 length, source.size()));
  return length;
}

/// Where some rows lie in a file.
struct Range {
  uint64_t offset;
  Shape shape;
};

Range rows_of(const FileSource& source, uint64_t data_offset, const SafetensorsEntry& entry, int64_t begin,
              int64_t count) {
  if (entry.shape.empty() || begin < 0 || count < 0 || count > entry.shape[0] - begin)
    throw InputError(fmt::format("{}: tensor '{}': {} rows from {} on of shape {}", source.path().string(), entry.name,
                                 count, begin, to_string(entry.shape)));
  Shape shape = entry.shape;
  const uint64_t row_bytes = shape[0] == 0 ? 0 : (entry.end - entry.begin) / static_cast<uint64_t>(shape[0]);
  shape[0] = count;
  return {data_offset + entry.begin + static_cast<uint64_t>(begin) * row_bytes, std::move(shape)};
}

Tensor read_stored(const FileSource& source, const SafetensorsEntry& entry, const Range& range) {
  if (!entry.dtype())
    throw InputError(fmt::format("{}: tensor '{}': {} is no type that Trainyard reads", source.path().string(),
                                 entry.name, entry.stored_dtype));
  Tensor tensor = Tensor::empty(range.shape, *entry.dtype());
  source.read(range.offset, {tensor.raw(), tensor.bytes()});
  return tensor;
}

Tensor read_converted(const FileSource& source, const SafetensorsEntry& entry, const Range& range) {
  const auto dtype = entry.dtype();
  if (!dtype || !is_floating(*dtype))
    throw InputError(fmt::format("{}: tensor '{}': {} where floating point was expected",
                                 source.path().string(), entry.name, entry.stored_dtype));
  const size_t element = size_of(*dtype);
  Tensor tensor = Tensor::empty(range.shape, DType::Float32);
  const size_t bytes = static_cast<size_t>(tensor.count()) * element;
  std::vector<std::byte> piece(std::min(kPieceBytes, bytes));
  for (size_t done = 0; done < bytes; done += piece.size()) {
    const std::span<std::byte> part(piece.data(), std::min(piece.size(), bytes - done));
    source.read(range.offset + done, part);
    convert(*dtype, part.data(), DType::Float32, tensor.raw() + done / element * sizeof(float), part.size() / element);
  }
  return tensor;
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : source_(std::move(path)) {
  std::string json(header_bytes_of(source_), '\0');
  source_.read(8, std::as_writable_bytes(std::span(json)));
  data_offset_ = 8 + json.size();
  header_ = parse_safetensors_header(json, source_.size() - data_offset_, source_.path().string());
  for (size_t i = 0; i < header_.entries.size(); ++i) index_.emplace(header_.entries[i].name, i);
}

const SafetensorsEntry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) throw InputError(fmt::format("{}: no tensor '{}'", path().string(), name));
  return header_.entries[found->second];
}

Tensor SafetensorsFile::read(const std::string& name) const {
  const SafetensorsEntry& found = entry(name);
  return read_stored(source_, found, {data_offset_ + found.begin, found.shape});
}

Tensor SafetensorsFile::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  const SafetensorsEntry& found = entry(name);
  return read_stored(source_, found, rows_of(source_, data_offset_, found, begin, count));
}

Tensor SafetensorsFile::read_rows_as_float32(const std::string& name, int64_t begin, int64_t count) const {
  return trainyard::read_rows_as_float32(source_, data_offset_, entry(name), begin, count);
}

Tensor read_rows_as_float32(const FileSource& source, uint64_t data_offset, const SafetensorsEntry& entry,
                            int64_t begin, int64_t count) {
  const Range range = rows_of(source, data_offset, entry, begin, count);
  return entry.stored_dtype == "F32" ? read_stored(source, entry, range) : read_converted(source, entry, range);
}

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<ByteSink> sink, std::span<const Declared> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : sink_(std::move(sink)), tensors_(tensors.begin(), tensors.end()) {
  std::vector<SafetensorsEntry> entries;
  std::unordered_set<std::string> names{"__metadata__"};
  uint64_t offset = 0;
  for (const Declared& tensor : tensors_) {
    if (!names.insert(tensor.name).second)
      throw std::invalid_argument(fmt::format("safetensors: the name '{}' stands twice or is reserved", tensor.name));
    const uint64_t end = offset + static_cast<uint64_t>(count_of(tensor.shape)) * size_of(tensor.dtype);
    entries.push_back({tensor.name, std::string(safetensors_name_of(tensor.dtype)), tensor.shape, offset, end});
    offset = end;
  }
  sink_->write(format_safetensors_header(entries, metadata));
  if (!tensors_.empty()) left_ = count_of(tensors_[0].shape);
  skip_complete();
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::span<const Declared> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : SafetensorsWriter(std::make_unique<FileSink>(path), tensors, metadata) {}

void SafetensorsWriter::append(const Tensor& elements) {
  if (elements.count() == 0) return;
  if (current_ == tensors_.size())
    throw std::invalid_argument(
        fmt::format("safetensors: {} appended after the last tensor", to_string(elements.shape())));
  const Declared& tensor = tensors_[current_];
  if (elements.dtype() != tensor.dtype || elements.count() > left_)
    throw std::invalid_argument(fmt::format("safetensors: {} {} appended to '{}', which waits for {} elements of {}",
                                            name_of(elements.dtype()), to_string(elements.shape()), tensor.name, left_,
                                            name_of(tensor.dtype)));
  write(elements);
  left_ -= elements.count();
  skip_complete();
}

void SafetensorsWriter::write(const Tensor& elements) {
  if (elements.device().kind == DeviceKind::Cpu) return sink_->write(std::span(elements.raw(), elements.bytes()));
  const Tensor flat = elements.reshape({elements.count()});
  const int64_t most = std::min(flat.count(), static_cast<int64_t>(kStagedBytes / size_of(flat.dtype())));
  const Tensor buffer = Tensor::pinned({most}, flat.dtype());
  for (int64_t begin = 0; begin < flat.count(); begin += most) {
    Tensor piece = buffer.rows(0, std::min(most, flat.count() - begin));
    copy(flat.rows(begin, piece.count()), piece);
    sink_->write(std::span(piece.raw(), piece.bytes()));
  }
}

void SafetensorsWriter::skip_complete() {
  while (current_ < tensors_.size() && left_ == 0)
    if (++current_ < tensors_.size()) left_ = count_of(tensors_[current_].shape);
}

void SafetensorsWriter::finish() {
  if (current_ < tensors_.size())
    throw std::invalid_argument(
        fmt::format("safetensors: '{}' still waits for {} elements", tensors_[current_].name, left_));
  sink_->finish();
}

}  // namespace trainyard
