#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace trainyard {
namespace {

/// Letters to insert, remove, replace, or swap with their neighbour: "trian" is one away from "train".
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known) {
  std::optional<std::string> best;
  size_t best_distance = 0;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance * 3 > std::max(word.size(), candidate.size())) continue;
    if (!best || distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string with_thousands(int64_t value) {
  std::string digits = fmt::format("{}", value < 0 ? -value : value);
  for (ptrdiff_t at = static_cast<ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return value < 0 ? "-" + digits : digits;
}

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

std::string human_duration(std::chrono::milliseconds duration) {
  const auto milliseconds = duration.count();
  if (milliseconds < 1000) return fmt::format("{} ms", milliseconds);
  if (milliseconds % 60000 == 0) return fmt::format("{} min", milliseconds / 60000);
  if (milliseconds % 1000 == 0) return fmt::format("{} s", milliseconds / 1000);
  return fmt::format("{:.1f} s", static_cast<double>(milliseconds) / 1000);
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, uint64_t> kUnits[] = {{"KiB", uint64_t{1} << 10U},
                                                              {"MiB", uint64_t{1} << 20U},
                                                              {"GiB", uint64_t{1} << 30U},
                                                              {"TiB", uint64_t{1} << 40U},
                                                              {"KB", 1'000},
                                                              {"MB", 1'000'000},
                                                              {"GB", 1'000'000'000},
                                                              {"TB", 1'000'000'000'000}};
  uint64_t unit_bytes = 1;
  for (const auto& [unit, bytes] : kUnits)
    if (unit_bytes == 1 && text.ends_with(unit)) {
      unit_bytes = bytes;
      text = trim(text.substr(0, text.size() - unit.size()));
    }
  const auto count = parse_int(text);
  uint64_t bytes = 0;
  if (!count || *count < 0 || __builtin_mul_overflow(static_cast<uint64_t>(*count), unit_bytes, &bytes))
    return std::nullopt;
  return bytes;
}

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string shortened(std::vector<std::string> names) {
  constexpr std::ptrdiff_t kShown = 8;
  if (std::ssize(names) > kShown) {
    names.erase(names.begin() + kShown / 2, names.end() - kShown / 2);
    names.insert(names.begin() + kShown / 2, "…");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace trainyard
