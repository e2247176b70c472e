#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/byte_io.h"
#include "tensor/safetensors_header.h"
#include "tensor/tensor.h"

namespace trainyard {

/// A safetensors file, its header checked and held, its data read when asked for and only what is asked for.
/// Threads may read at once.
class SafetensorsFile {
 public:
  /// Throws InputError, naming the file and the tensor, for every way in which the file can be damaged or hostile
  /// (safetensors_header.h); nothing is allocated by a number in the file that its length does not bear out.
  explicit SafetensorsFile(std::filesystem::path path);

  [[nodiscard]] bool has(const std::string& name) const { return index_.contains(name); }
  /// The entries stand in the order of the data.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  [[nodiscard]] const std::filesystem::path& path() const { return source_.path(); }
  /// Throws InputError where the file has no such tensor.
  [[nodiscard]] const SafetensorsEntry& entry(const std::string& name) const;

  /// The whole tensor in its stored dtype. Throws InputError: no such tensor, or of another type.
  [[nodiscard]] Tensor read(const std::string& name) const;
  /// Rows [begin, begin + count) of dim 0; no other byte of the data is read. Throws InputError where they are not
  /// there.
  [[nodiscard]] Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const;
  /// The same, converted to float32 from F32, BF16, F16, F64, F8_E4M3 or F8_E5M2, in pieces: nothing of the stored type
  /// is held.
  [[nodiscard]] Tensor read_rows_as_float32(const std::string& name, int64_t begin, int64_t count) const;

 private:
  FileSource source_;
  uint64_t data_offset_ = 0;
  SafetensorsHeader header_;
  std::unordered_map<std::string, size_t> index_;
};

/// Rows of a tensor of any file of tensors, converted to float32 in pieces; `entry.begin` counts from `data_offset`.
/// Throws InputError: rows that are not there, a type that is no floating point.
Tensor read_rows_as_float32(const FileSource& source, uint64_t data_offset, const SafetensorsEntry& entry,
                            int64_t begin, int64_t count);

/// Writes a safetensors file from front to back: the header first, from what is declared, then the data as it comes, so
/// that only one tensor, or a part of one, need be in memory. Equal contents give equal bytes.
class SafetensorsWriter {
 public:
  struct Declared {
    std::string name;
    DType dtype = DType::Float32;
    Shape shape;
  };

  /// Writes the header. Throws std::invalid_argument for a name that stands twice, else what the sink throws.
  SafetensorsWriter(std::unique_ptr<ByteSink> sink, std::span<const Declared> tensors,
                    const std::map<std::string, std::string>& metadata = {});
  /// It writes to a file. Throws std::filesystem::filesystem_error (disk full and the like) here and below.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const Declared> tensors,
                    const std::map<std::string, std::string>& metadata = {});

  /// The next elements in the order declared: a whole tensor, or some rows of it; those of a device come piece by
  /// piece. Throws std::invalid_argument where they are of another dtype or more than the tensor has left.
  void append(const Tensor& elements);
  /// Makes the file durable. Throws std::invalid_argument where declared data has not come.
  void finish();

 private:
  void write(const Tensor& elements);
  void skip_complete();

  std::unique_ptr<ByteSink> sink_;
  std::vector<Declared> tensors_;
  size_t current_ = 0;
  int64_t left_ = 0;  ///< elements of the current tensor that have not come
};

}  // namespace trainyard
