#include "tensor/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"

namespace trainyard {
namespace {

using Json = nlohmann::json;

struct StoredType {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> dtype;  ///< what reading gives
};

constexpr StoredType kStoredTypes[] = {
    {"F32", 4, DType::Float32},
    {"BF16", 2, DType::BFloat16},
    {"F16", 2, DType::Float16},
    {"F64", 8, DType::Float64},
    {"I32", 4, DType::Int32},
    {"I64", 8, DType::Int64},
    {"U8", 1, DType::UInt8},
    {"I8", 1, {}},
    {"BOOL", 1, {}},
    {"I16", 2, {}},
    {"U16", 2, {}},
    {"U32", 4, {}},
    {"U64", 8, {}},
    {"F8_E4M3", 1, DType::Float8E4M3},
    {"F8_E5M2", 1, DType::Float8E5M2},
    {"C64", 8, {}},
};

const StoredType* find_stored_type(std::string_view name) {
  const auto found = std::ranges::find(kStoredTypes, name, &StoredType::name);
  return found == std::end(kStoredTypes) ? nullptr : &*found;
}

/// Collects the header as its JSON goes by, so that a hostile one never becomes a tree in memory.
/// Depth 1 is the whole, 2 a tensor or __metadata__, 3 a list of numbers.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& where) : where_(where) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(size_t) override {
    if (begins_in_extra()) return true;
    if (depth_ == 1 && !in_metadata_) header_.entries.emplace_back().name = name_;
    if (++depth_ > 2) fail("an object where a value belongs");
    fields_.clear();
    return true;
  }
  bool key(std::string& text) override {
    if (extra_depth_ > 0) return true;
    if (depth_ == 1) {
      begin_member(text);
    } else if (in_metadata_) {
      if (header_.metadata.contains(text)) fail(fmt::format("'{}' stands twice", text));
      field_ = text;
    } else if (text != "dtype" && text != "shape" && text != "data_offsets") {
      in_extra_ = true;  // the format's library reads past it, whatever its value is
    } else {
      if (!fields_.insert(text).second) fail(fmt::format("'{}' stands twice", text));
      field_ = text;
    }
    return true;
  }
  bool end_object() override {
    if (ends_in_extra()) return true;
    if (depth_ == 2 && !in_metadata_) end_entry();
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (begins_in_extra()) return true;
    if (depth_ != 2 || in_metadata_ || field_ == "dtype") fail("a list where none belongs");
    ++depth_;
    return true;
  }
  bool end_array() override { return ends_in_extra() || (--depth_, true); }
  bool number_unsigned(uint64_t value) override {
    if (is_extra()) return true;
    if (depth_ != 3) fail(fmt::format("the number {} where none belongs", value));
    SafetensorsEntry& entry = header_.entries.back();
    if (field_ == "shape") {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) fail(fmt::format("a size of {}", value));
      entry.shape.push_back(static_cast<int64_t>(value));
    } else {
      if (offsets_seen_ == 2) fail("more than two data_offsets");
      (offsets_seen_++ == 0 ? entry.begin : entry.end) = value;
    }
    return true;
  }
  bool string(std::string& text) override {
    if (is_extra()) return true;
    if (depth_ != 2 || (!in_metadata_ && field_ != "dtype")) fail("text where none belongs");
    (in_metadata_ ? header_.metadata[field_] : header_.entries.back().stored_dtype) = text;
    return true;
  }
  bool number_integer(int64_t value) override {
    return is_extra() || (fail(fmt::format("the negative number {}", value)), false);
  }
  bool number_float(double, const std::string& text) override {
    if (is_extra()) return true;
    fail(fmt::format("{} is no whole number in range", text));
  }
  bool null() override { return is_extra() || (fail("a null"), false); }
  bool boolean(bool) override { return is_extra() || (fail("a boolean"), false); }
  bool binary(Json::binary_t&) override { fail("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(fmt::format("malformed JSON at byte {} of the header", position));
  }

 private:
  /// Whether a list or an object begins inside a field that is read past, or is its value.
  bool begins_in_extra() {
    if (in_extra_) ++extra_depth_;
    return in_extra_;
  }
  bool ends_in_extra() {
    if (!in_extra_) return false;
    in_extra_ = --extra_depth_ > 0;
    return true;
  }
  /// Whether the value that has been read stands inside such a field, or is its value.
  bool is_extra() {
    const bool was_in = in_extra_;
    in_extra_ = in_extra_ && extra_depth_ > 0;
    return was_in;
  }
  void begin_member(const std::string& text) {
    in_metadata_ = text == "__metadata__";
    name_ = text;
    offsets_seen_ = 0;
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    if (text.empty() || text.size() > 4096 || std::ranges::any_of(text, is_control)) {
      name_.clear();  // not fit to be shown
      fail(fmt::format("a tensor's name of {} bytes is empty, too long or holds control characters", text.size()));
    }
    if (!names_.insert(text).second) fail("the name stands twice");
  }
  void end_entry() {
    if (fields_.size() != 3 || offsets_seen_ != 2) fail("dtype, shape or two data_offsets are missing");
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(name_.empty() ? fmt::format("{}: {}", where_, what)
                                   : fmt::format("{}: tensor '{}': {}", where_, name_, what));
  }

  const std::string& where_;
  SafetensorsHeader header_;
  std::unordered_set<std::string> names_, fields_;
  std::string name_, field_;
  int depth_ = 0, offsets_seen_ = 0, extra_depth_ = 0;
  bool in_metadata_ = false, in_extra_ = false;
};

/// None: the product does not fit 63 bits, sizes of 0 left out, so that nobody's product overflows on the way to it.
std::optional<uint64_t> bytes_of(const Shape& shape, uint64_t element_bytes) {
  int64_t bytes = static_cast<int64_t>(element_bytes);
  for (const int64_t size : shape)
    if (size != 0 && __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  const bool is_empty = std::ranges::find(shape, 0) != shape.end();
  return is_empty ? 0 : static_cast<uint64_t>(bytes);
}

void check_entry(const SafetensorsEntry& entry, uint64_t data_bytes, const std::string& where) {
  const std::string tensor = fmt::format("{}: tensor '{}'", where, entry.name);
  if (entry.begin > entry.end || entry.end > data_bytes)
    throw InputError(
        fmt::format("{}: data_offsets {} to {} lie outside the {} bytes of data; the file is truncated or damaged",
                    tensor, entry.begin, entry.end, data_bytes));
  const StoredType* const stored = find_stored_type(entry.stored_dtype);
  const auto needed = bytes_of(entry.shape, stored ? stored->bytes : 1);
  if (!needed) throw InputError(fmt::format("{}: the size of shape {} overflows", tensor, to_string(entry.shape)));
  if (stored &&
      *needed != entry.end - entry.begin)  // a type we do not know has no size to compare; reading it is refused
    throw InputError(fmt::format("{}: {} of shape {} needs {} bytes, its data_offsets hold {}", tensor,
                                 entry.stored_dtype, to_string(entry.shape), *needed, entry.end - entry.begin));
}

void check_coverage(std::span<const SafetensorsEntry> entries, uint64_t data_bytes, const std::string& where) {
  uint64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != covered)
      throw InputError(fmt::format(
          "{}: tensor '{}': begins at byte {} of the data, which {} byte {}", where, entry.name, entry.begin,
          entry.begin < covered ? "overlaps the tensor before it, ending at" : "leaves a gap after", covered));
    covered = entry.end;
  }
  if (covered != data_bytes)
    throw InputError(fmt::format("{}: the tensors end at byte {} of {} bytes of data", where, covered, data_bytes));
}

}  // namespace

std::optional<DType> dtype_of_safetensors(std::string_view stored) {
  const StoredType* const found = find_stored_type(stored);
  return found ? found->dtype : std::nullopt;
}

std::optional<DType> SafetensorsEntry::dtype() const {
  return dtype_of_safetensors(stored_dtype);
}

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& where) {
  HeaderReader reader(where);
  const size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || json[first] != '{')
    throw InputError(fmt::format("{}: the header is no JSON object", where));
  // The parser takes a NUL for the end of its text. The format pads with spaces, and its library takes nothing else.
  if (const size_t nul = json.find('\0'); nul != std::string_view::npos)
    throw InputError(fmt::format("{}: a NUL at byte {} of the header, which only spaces may fill up", where, nul));
  Json::sax_parse(json, &reader);
  SafetensorsHeader header = reader.take();
  for (const SafetensorsEntry& entry : header.entries) check_entry(entry, data_bytes, where);
  std::ranges::stable_sort(header.entries, {},
                           [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); });
  check_coverage(header.entries, data_bytes, where);
  return header;
}

std::string format_safetensors_header(std::span<const SafetensorsEntry> entries,
                                      const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) json += "\"__metadata__\":" + Json(metadata).dump();
  for (const SafetensorsEntry& entry : entries) {
    if (json.size() > 1) json += ',';
    json += fmt::format("{}:{{\"dtype\":{},\"shape\":{},\"data_offsets\":[{},{}]}}", Json(entry.name).dump(),
                        Json(entry.stored_dtype).dump(), Json(entry.shape).dump(), entry.begin, entry.end);
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > kMaxSafetensorsHeaderBytes)
    throw std::invalid_argument(fmt::format("safetensors: a header of {} bytes, the format's readers take at most {}",
                                            json.size(), kMaxSafetensorsHeaderBytes));
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(json.size() >> shift & 0xffU);
  return bytes + json;
}

std::string_view safetensors_name_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return "F32";
    case DType::BFloat16:
      return "BF16";
    case DType::Float16:
      return "F16";
    case DType::Float8E4M3:
      return "F8_E4M3";
    case DType::Float8E5M2:
      return "F8_E5M2";
    case DType::Float64:
      return "F64";
    case DType::Int32:
      return "I32";
    case DType::Int64:
      return "I64";
    case DType::UInt8:
      return "U8";
  }
  return "";
}

}  // namespace trainyard
