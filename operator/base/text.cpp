#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

/// Levenshtein's, one row at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

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

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace trainyard
