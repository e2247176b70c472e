#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// One value of the schema, as text and as a C++ value. YAML scalars and flags are both text, so they meet here.
namespace trainyard::config {

/// An enumeration is held by its canonical name. The alternative that a key's default holds is the key's type for good.
using Value =
    std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<double>, std::chrono::milliseconds>;

/// What a value may be, beyond its type. Bounds of a duration are in milliseconds; those of a list hold for each entry.
struct Limits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  ///< min itself is out
  bool below_max = false;  ///< max itself is out
  size_t entries = 0;      ///< exact length of a list; 0 = any
  bool not_empty = false;  ///< of a text
};

/// One word of an enumeration, lower case, and other spellings that are accepted for it.
struct Choice {
  std::string name;
  std::vector<std::string> aliases;
};

/// What a text must be to become a value: `type` picks the alternative, `choices` is empty unless it is an enumeration.
struct Rule {
  Value type;
  Limits limits;
  std::vector<Choice> choices;
};

struct DurationUnit {
  std::string_view name;
  int64_t milliseconds;
};
/// Largest first: format_value takes the first that divides. "m" is what Go and systemd call a minute.
inline constexpr DurationUnit kDurationUnits[] = {
    {"h", 3'600'000}, {"min", 60'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};

/// Where `text` stops being UTF-8 without control characters (tab, line feed and carriage return aside): what YAML can
/// hold and the system takes as a name. None: it is all readable.
std::optional<size_t> first_unreadable(std::string_view text);

/// `text` as a value of `rule`. Throws InputError "<subject> is '<text>'; it must be …" where it is none.
Value parse_value(const Rule& rule, std::string_view text, const std::string& subject);

/// The text that parse_value reads back to an equal value: shortest round-trip numbers, 30s, [0.9, 0.95].
std::string format_value(const Value& value);

/// "whole number", "duration such as 30s, 10min or 1h", …
std::string type_name(const Rule& rule);

/// "at least 0", "above 0 and at most 1", "full, none"; empty where everything of the type is allowed.
std::string range_text(const Rule& rule);

/// `text` fit for one line of an error: control characters escaped, long text cut.
std::string shown(std::string_view text);

}  // namespace trainyard::config
