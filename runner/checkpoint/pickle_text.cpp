#include "checkpoint/pickle_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace trainyard::checkpoint {
namespace {

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

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;) strides[dim - 1] = strides[dim] * std::max<int64_t>(shape[dim], 1);
  return strides;
}

}  // namespace

void PickleText::name(std::string_view module, std::string_view what) {
  text_ += fmt::format("c{}\n{}\n", module, what);
}

void PickleText::text(std::string_view value) {
  text_ += 'X';
  little_endian(value.size(), 4);
  text_ += value;
}

void PickleText::number(int64_t value) {
  const bool is_short = value <= std::numeric_limits<int32_t>::max();
  text_ += is_short ? "J" : "\x8a\x08";
  little_endian(static_cast<uint64_t>(value), is_short ? 4 : 8);
}

void PickleText::tuple(const Shape& numbers) {
  text_ += '(';
  for (const int64_t each : numbers) number(each);
  text_ += 't';
}

void PickleText::size(const Shape& sizes) {
  name("torch", "Size");
  tuple(sizes);
  raw("\x85R");
}

void PickleText::object(std::string_view module, std::string_view type) {
  name(module, type);
  raw(")\x81");
}

/// _rebuild_tensor_v2(("storage", type, key, "cpu", elements), 0, shape, strides, False, OrderedDict())
void PickleText::tensor(std::string_view key, DType dtype, const Shape& shape) {
  name("torch._utils", "_rebuild_tensor_v2");
  raw("((");
  text("storage");
  name("torch", storage_type_of(dtype));
  text(key);
  text("cpu");
  number(count_of(shape));
  raw("tQ");
  number(0);
  tuple(shape);
  tuple(row_major_strides(shape));
  raw("\x89");
  name("collections", "OrderedDict");
  raw(")RtR");
}

void PickleText::little_endian(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace trainyard::checkpoint
