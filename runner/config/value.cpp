#include "config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::config {
namespace {
using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  int64_t milliseconds;
};
// Largest first: format takes the first that divides. "m" is what Go and systemd call a minute.
constexpr Unit kUnits[] = {{"h", 3'600'000}, {"min", 60'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return result;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_seed(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> parse_bool(std::string_view text) {
  const std::string word = lower(text);
  if (word == "true") return true;
  if (word == "false") return false;
  return std::nullopt;
}

std::optional<milliseconds> parse_duration(std::string_view text) {
  const size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) return std::nullopt;
  const auto number = parse_number(text.substr(0, end));
  const std::string unit_name = lower(trim(text.substr(end)));
  const auto* const unit = std::ranges::find(kUnits, std::string_view(unit_name), &Unit::name);
  if (!number || unit == std::end(kUnits)) return std::nullopt;
  const double count = *number * static_cast<double>(unit->milliseconds);
  if (count > 1e15 || count != std::floor(count)) return std::nullopt;  // past int64, or below a millisecond
  return milliseconds(static_cast<int64_t>(count));
}

std::optional<std::vector<double>> parse_list(std::string_view text) {
  if (text.starts_with('[') != text.ends_with(']')) return std::nullopt;
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  std::vector<double> values;
  for (const std::string& part : split(text, ',')) {
    const auto value = parse_number(trim(part));
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

/// Well-formed UTF-8 without NUL: what can be written into YAML and read back unchanged, and passed to the system.
bool is_clean_text(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    if (lead == 0 || length == 0 || i + length > text.size()) return false;
    uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t k = 1; k < length; ++k) {
      if (!is_continuation(static_cast<unsigned char>(text[i + k]))) return false;
      code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += length;
  }
  return true;
}

bool inside(double value, const Limits& limits) {
  const bool high_enough = limits.above_min ? value > limits.min : value >= limits.min;
  return high_enough && (limits.below_max ? value < limits.max : value <= limits.max);
}

struct Parser {
  const Rule& rule;
  std::string_view text;

  std::optional<Value> operator()(bool) const { return convert(parse_bool(text)); }
  std::optional<Value> operator()(uint64_t) const { return convert(parse_seed(text)); }
  std::optional<Value> operator()(int64_t) const { return bounded(parse_int(text)); }
  std::optional<Value> operator()(double) const { return bounded(parse_number(text)); }

  std::optional<Value> operator()(milliseconds) const {
    const auto value = parse_duration(text);
    if (!value || !inside(static_cast<double>(value->count()), rule.limits)) return std::nullopt;
    return Value(*value);
  }

  std::optional<Value> operator()(const std::vector<double>&) const {
    const auto values = parse_list(text);
    if (!values || (rule.limits.entries && values->size() != rule.limits.entries)) return std::nullopt;
    if (!std::ranges::all_of(*values, [&](double value) { return inside(value, rule.limits); })) return std::nullopt;
    return Value(*values);
  }

  std::optional<Value> operator()(const std::string&) const {
    if (rule.choices.empty()) {
      const bool fits = is_clean_text(text) && !(rule.limits.not_empty && text.empty());
      return fits ? std::optional<Value>(std::string(text)) : std::nullopt;
    }
    const std::string word = lower(text);
    for (const Choice& choice : rule.choices)
      if (word == choice.name || std::ranges::count(choice.aliases, word)) return Value(choice.name);
    return std::nullopt;
  }

 private:
  template <typename T>
  static std::optional<Value> convert(const std::optional<T>& value) {
    return value ? std::optional<Value>(*value) : std::nullopt;
  }
  template <typename T>
  std::optional<Value> bounded(const std::optional<T>& value) const {
    return value && inside(static_cast<double>(*value), rule.limits) ? std::optional<Value>(*value) : std::nullopt;
  }
};

std::vector<std::string> names(const std::vector<Choice>& choices) {
  std::vector<std::string> result;
  for (const Choice& choice : choices) result.push_back(choice.name);
  return result;
}

std::string bound_text(double bound, const Rule& rule) {
  if (!std::holds_alternative<milliseconds>(rule.type)) return format_value(bound);
  return format_value(milliseconds(static_cast<int64_t>(bound)));
}

std::string expected(const Rule& rule, std::string_view text) {
  if (!rule.choices.empty()) {
    const auto near = nearest(lower(text), names(rule.choices));
    return fmt::format("use {}{}", range_text(rule), near ? fmt::format(" (did you mean {}?)", *near) : "");
  }
  if (std::holds_alternative<bool>(rule.type)) return "use true or false";
  const std::string range = range_text(rule);
  return fmt::format("it must be {}{}{}", type_name(rule), range.empty() ? "" : ", ", range);
}

std::string list_length(size_t entries) {
  return entries ? fmt::format("a list of {} numbers, such as [0.9, 0.95]", entries) : "a list of numbers";
}

}  // namespace

Value parse_value(const Rule& rule, std::string_view text, const std::string& subject) {
  if (auto value = std::visit([&](const auto& type) { return Parser{rule, text}(type); }, rule.type)) return *value;
  throw InputError(fmt::format("{} is '{}'; {}", subject, shown(text), expected(rule, text)));
}

std::string format_value(const Value& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  if (const auto* const list = std::get_if<std::vector<double>>(&value))
    return fmt::format("[{}]", fmt::join(*list, ", "));
  if (const auto* const duration = std::get_if<milliseconds>(&value)) {
    const int64_t count = duration->count();
    if (count == 0) return "0s";
    for (const Unit& unit : kUnits)
      if (count % unit.milliseconds == 0) return fmt::format("{}{}", count / unit.milliseconds, unit.name);
  }
  if (const auto* const flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* const number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* const seed = std::get_if<uint64_t>(&value)) return fmt::format("{}", *seed);
  return fmt::format("{}", std::get<int64_t>(value));
}

std::string type_name(const Rule& rule) {
  if (!rule.choices.empty()) return "one of";
  struct Names {
    const Limits& limits;
    std::string operator()(bool) const { return "true or false"; }
    std::string operator()(int64_t) const { return "a whole number"; }
    std::string operator()(uint64_t) const { return "a whole number from 0 to 2^64 - 1"; }
    std::string operator()(double) const { return "a number"; }
    std::string operator()(const std::string&) const {
      return limits.not_empty ? "a text that is not empty" : "a text in UTF-8";
    }
    std::string operator()(const std::vector<double>&) const { return list_length(limits.entries); }
    std::string operator()(milliseconds) const { return "a duration such as 500ms, 30s, 10min or 1h"; }
  };
  return std::visit(Names{rule.limits}, rule.type);
}

std::string range_text(const Rule& rule) {
  if (!rule.choices.empty()) {
    const auto words = names(rule.choices);
    return words.size() < 2 ? words.front()
                            : fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
  }
  const Limits& limits = rule.limits;
  const std::string low = std::isinf(limits.min) ? ""
                                                 : fmt::format("{} {}", limits.above_min ? "above" : "at least",
                                                               bound_text(limits.min, rule));
  const std::string high = std::isinf(limits.max) ? ""
                                                  : fmt::format("{} {}", limits.below_max ? "below" : "at most",
                                                                bound_text(limits.max, rule));
  const std::string each = std::holds_alternative<std::vector<double>>(rule.type) ? "each " : "";
  return fmt::format("{}{}{}{}", low.empty() && high.empty() ? "" : each, low,
                     low.empty() || high.empty() ? "" : " and ", high);
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string result;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      result += "\\n";
    else if (byte < 0x20 || byte == 0x7F)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  // A cut in the middle of a UTF-8 sequence would print as garbage.
  if (text.size() > kLongest) {
    while (!result.empty() && is_continuation(static_cast<unsigned char>(result.back()))) result.pop_back();
    if (!result.empty() && static_cast<unsigned char>(result.back()) >= 0xC0) result.pop_back();
    result += "…";
  }
  return result;
}

}  // namespace trainyard::config
