#include "cli/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "api/label_rules.h"
#include "base/text.h"

namespace trainyard::cli {
namespace {

constexpr double kLongestSeconds = 100.0 * 365 * 24 * 3600;

std::string refusal(const std::string& text, const std::string& allowed) {
  return fmt::format("'{}' is given; {} is allowed", text, allowed);
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// Takes the longest beginning that is no letter for the number; nothing is left of `text` at its end.
std::optional<double> next_part(std::string_view& text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = number_of(text.substr(0, digits));
  text.remove_prefix(digits);
  const size_t letters = std::min(text.find_first_of("0123456789."), text.size());
  const auto* const unit =
      std::ranges::find(kUnits, text.substr(0, letters), &std::pair<std::string_view, double>::first);
  text.remove_prefix(letters);
  if (!number || unit == kUnits.end()) return std::nullopt;
  return *number * unit->second;
}

bool is_label(std::string_view text) {
  return api::label_defect(text).empty();
}

bool is_subdomain(std::string_view text) {
  return text.size() <= 253 && std::ranges::all_of(parts_of(text, '.'), is_label);
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double seconds = 0;
  if (const auto alone = number_of(text)) {
    seconds = *alone;
  } else {
    if (text.empty()) return std::nullopt;
    while (!text.empty()) {
      const auto part = next_part(text);
      if (!part) return std::nullopt;
      seconds += *part;
    }
  }
  if (seconds < 0 || seconds > kLongestSeconds) return std::nullopt;
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

CLI::Validator whole_number(int64_t least, int64_t most) {
  return {[least, most](const std::string& text) {
            const auto number = parse_int(text);
            if (number && *number >= least && *number <= most) return std::string();
            return refusal(text, fmt::format("a whole number from {} to {}", least, most));
          },
          "N"};
}

CLI::Validator number_from(double least) {
  return {[least](const std::string& text) {
            const auto number = number_of(text);
            return number && *number >= least ? "" : refusal(text, fmt::format("a number from {} on", least));
          },
          "NUMBER"};
}

CLI::Validator duration() {
  return {[](std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed) return refusal(text, "a time such as 500ms, 60s, 1m30s or 2h");
            text = std::to_string(parsed->count());
            return std::string();
          },
          "TIME"};
}

CLI::Validator one_of(std::vector<std::string> words) {
  std::string name = fmt::format("{}", fmt::join(words, "|"));
  return {[words = std::move(words)](const std::string& text) {
            return std::ranges::count(words, text) > 0 ? "" : refusal(text, fmt::format("{}", fmt::join(words, ", ")));
          },
          name};
}

CLI::Validator object_name(NameForm form, bool may_be_empty) {
  return {[form, may_be_empty](const std::string& text) {
            if (text.empty() && may_be_empty) return std::string();
            if (form == NameForm::Label)
              return is_label(text) ? "" : refusal(text, "a name of at most 63 lower case letters, digits and '-'");
            return is_subdomain(text) ? "" : refusal(text, "a name of lower case letters, digits, '-' and '.'");
          },
          "NAME"};
}

CLI::Validator web_address() {
  return {[](const std::string& text) {
            const size_t scheme = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
            return scheme > 0 && text.size() > scheme ? "" : refusal(text, "https://HOST[:PORT]/PATH (or http://)");
          },
          "URL"};
}

}  // namespace trainyard::cli
