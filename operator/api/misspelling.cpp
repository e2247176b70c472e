#include "api/misspelling.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.h"

namespace trainyard::api {
namespace {

constexpr size_t kLongestName = 100;  // longer than any field's, and what anybody may send stays cheap to compare

using Words = std::vector<std::string>;

/// "imagePullPolicy" and "image_pull_policy" -> image, pull, policy
Words words_of(std::string_view name) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  Words words(1);
  bool was_upper = true;
  for (const char c : name) {
    const bool is_separator = c == '_' || c == '-' || c == '.';
    if ((is_separator || (is_upper(c) && !was_upper)) && !words.back().empty()) words.emplace_back();
    if (!is_separator) words.back() += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
    was_upper = is_upper(c);
  }
  return words;
}

std::string joined(const Words& words) {
  return std::accumulate(words.begin(), words.end(), std::string());
}

bool are_near(const std::string& a, const std::string& b) {
  return edit_distance(a, b) * 3 <= std::max(a.size(), b.size());
}

bool is_misspelling(const Words& given, const Words& known) {
  const std::string a = joined(given), b = joined(known);
  if (!are_near(a, b)) return false;
  if (edit_distance(a, b) <= 2) return true;
  if (given.size() == known.size()) return std::equal(given.begin(), given.end(), known.begin(), &are_near);
  const bool has_words_added = given.size() > known.size() && std::equal(known.begin(), known.end(), given.begin());
  return !has_words_added;
}

}  // namespace

std::optional<std::string> meant_field(std::string_view name, std::span<const std::string> known) {
  if (name.size() > kLongestName) return std::nullopt;
  const Words given = words_of(name);
  std::vector<std::string> meant;
  for (const std::string& field : known)
    if (is_misspelling(given, words_of(field))) meant.push_back(field);
  const auto distance = [&](const std::string& field) { return edit_distance(joined(given), joined(words_of(field))); };
  const auto best = std::ranges::min_element(meant, {}, distance);
  return best == meant.end() ? std::nullopt : std::optional(*best);
}

}  // namespace trainyard::api
