#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

// The header of a safetensors file: 8 bytes little-endian length, that many bytes of JSON, then the data.
//   {"__metadata__": {text: text}, name: {"dtype": "F32", "shape": [4, 96], "data_offsets": [begin, end]}, …}
// Offsets count from the end of the header; the tensors cover the data without gap or overlap.
// https://github.com/huggingface/safetensors
namespace trainyard {

/// The limit of the reference implementation; a longer one is an attack or not this format.
constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string stored_dtype;  ///< as in the file: "F32", "BF16", "F16", … or a type that this program does not know
  Shape shape;
  uint64_t begin = 0, end = 0;  ///< bytes, from the end of the header

  /// What reading gives: the stored type; none where it cannot be read.
  [[nodiscard]] std::optional<DType> dtype() const;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
};

/// Parses and checks the JSON of a header whose file has `data_bytes` behind it. Time and memory are linear in the
/// text. `where` begins every message. Throws InputError, naming the tensor, for: malformed JSON, unknown or missing
/// fields, a duplicate or invalid name, sizes that overflow, data_offsets that do not fit the dtype and shape, lie
/// outside the file, overlap or leave a gap. A dtype that this program does not know is refused only when it is read.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& where);

/// The bytes that begin a file with `entries` in this order: length, JSON, spaces up to a multiple of 8. Equal
/// arguments give equal bytes. `begin` and `end` of the entries must be right.
std::string format_safetensors_header(std::span<const SafetensorsEntry> entries,
                                      const std::map<std::string, std::string>& metadata);

/// float32 for "F32", …; none where such a tensor cannot be read.
std::optional<DType> dtype_of_safetensors(std::string_view stored);
/// "F32" for float32, …
std::string_view safetensors_name_of(DType dtype);

}  // namespace trainyard
