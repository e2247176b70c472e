#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "config/value.h"

namespace trainyard::config {
namespace {
using std::chrono::milliseconds;

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
  const auto* const unit = std::ranges::find(kDurationUnits, std::string_view(unit_name), &DurationUnit::name);
  if (!number || unit == std::end(kDurationUnits)) return std::nullopt;
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

/// Bytes of the UTF-8 sequence that `text` begins with; 0 where it is malformed (RFC 3629, table 3-7 of Unicode).
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) -> unsigned { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const auto within = [&](size_t i, unsigned low, unsigned high) { return byte(i) >= low && byte(i) <= high; };
  const auto tail = [&](size_t i) { return within(i, 0x80, 0xBF); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (within(0, 0xC2, 0xDF)) return tail(1) ? 2 : 0;
  // Past the lead, bounds of the second byte keep out overlong forms, surrogates and what lies above U+10FFFF.
  if (within(0, 0xE0, 0xEF))
    return within(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && tail(2) ? 3 : 0;
  if (within(0, 0xF0, 0xF4))
    return within(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && tail(2) && tail(3) ? 4 : 0;
  return 0;
}

bool is_control(char c) {
  return (c >= 0 && c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
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
      const bool fits = !first_unreadable(text) && !(rule.limits.not_empty && text.empty());
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

std::string expected(const Rule& rule, std::string_view text) {
  if (!rule.choices.empty()) {
    const auto near = nearest(lower(text), names(rule.choices));
    return fmt::format("use {}{}", range_text(rule), near ? fmt::format(" (did you mean {}?)", *near) : "");
  }
  if (std::holds_alternative<bool>(rule.type)) return "use true or false";
  const std::string range = range_text(rule);
  return fmt::format("it must be {}{}{}", type_name(rule), range.empty() ? "" : ", ", range);
}

}  // namespace

std::optional<size_t> first_unreadable(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text.substr(at));
    if (length == 0 || is_control(text[at])) return at;
    at += length;
  }
  return std::nullopt;
}

Value parse_value(const Rule& rule, std::string_view text, const std::string& subject) {
  if (auto value = std::visit([&](const auto& type) { return Parser{rule, text}(type); }, rule.type)) return *value;
  throw InputError(fmt::format("{} is '{}'; {}", subject, shown(text), expected(rule, text)));
}

}  // namespace trainyard::config
