#include "base/large_numbers.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace trainyard {
namespace {

constexpr std::string_view kMark = "\"\\u0001number ";  // JSON dumps the control character as this escape

bool is_of_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

template <typename Number>
bool holds(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

/// Whether `text` is a whole number, as JSON spells one, that no type of 64 bits holds.
bool is_large(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool is_whole = !digits.empty() && digits[0] != '0' && digits.find_first_not_of("0123456789") == digits.npos;
  return is_whole && !holds<int64_t>(text) && !holds<uint64_t>(text);
}

/// How many characters of `text`, which begins with a quotation mark, its string has.
size_t string_length(std::string_view text) {
  size_t at = 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

size_t number_length(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_of_number(text[at])) ++at;
  return at;
}

}  // namespace

std::string with_large_numbers_held(std::string_view json) {
  std::string held;
  while (!json.empty()) {
    const size_t length =
        json[0] == '"' ? string_length(json) : std::max(number_length(json), size_t{1});
    const std::string_view token = json.substr(0, length);
    if (is_large(token))
      held.append(kMark).append(token).append("\"");
    else
      held.append(token);
    json.remove_prefix(length);
  }
  return held;
}

std::string with_large_numbers_released(std::string_view json) {
  std::string released;
  for (size_t mark = json.find(kMark); mark != json.npos; mark = json.find(kMark)) {
    released += json.substr(0, mark);
    json.remove_prefix(mark + kMark.size());
    const size_t length = number_length(json);
    released += json.substr(0, length);
    json.remove_prefix(std::min(length + 1, json.size()));  // the quotation mark behind it
  }
  return released.append(json);
}

}  // namespace trainyard
