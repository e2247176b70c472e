#include "config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trainyard::config {
namespace {
using std::chrono::milliseconds;

std::string bound_text(double bound, const Rule& rule) {
  if (!std::holds_alternative<milliseconds>(rule.type)) return format_value(bound);
  return format_value(milliseconds(static_cast<int64_t>(bound)));
}

std::string list_length(size_t entries) {
  return entries ? fmt::format("a list of {} numbers, such as [0.9, 0.95]", entries) : "a list of numbers";
}

}  // namespace

std::string format_value(const Value& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  if (const auto* const list = std::get_if<std::vector<double>>(&value))
    return fmt::format("[{}]", fmt::join(*list, ", "));
  if (const auto* const duration = std::get_if<milliseconds>(&value)) {
    const int64_t count = duration->count();
    if (count == 0) return "0s";
    for (const DurationUnit& unit : kDurationUnits)
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
    std::vector<std::string> words;
    for (const Choice& choice : rule.choices) words.push_back(choice.name);
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
  size_t end = std::min(text.size(), kLongest);
  // A cut in the middle of a UTF-8 sequence would print as garbage.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  std::string result;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      result += "\\n";
    else if (byte < 0x20 || byte == 0x7F)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return end < text.size() ? result + "…" : result;
}

}  // namespace trainyard::config
