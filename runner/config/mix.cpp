#include "config/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "config/value.h"

namespace trainyard::config {
namespace {

constexpr int64_t kMostTogether = 1'000'000;
constexpr size_t kMostDigits = 6;

/// A decimal number in millionths. Throws InputError.
int64_t millionths_of(const std::string& word, const std::string& rule) {
  const size_t dot = std::min(word.find('.'), word.size());
  const std::string whole = word.substr(0, dot), part = dot < word.size() ? word.substr(dot + 1) : "";
  const auto is_digits = [](const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool is_number = whole.size() + part.size() > 0 && whole.size() <= kMostDigits + 1 &&
                         part.size() <= kMostDigits && is_digits(whole) && is_digits(part);
  const std::string digits = whole + part + std::string(kMostDigits - std::min(part.size(), kMostDigits), '0');
  const int64_t millionths = is_number ? parse_int(digits).value_or(0) : 0;
  if (millionths == 0)
    throw InputError(fmt::format("the weight '{}' of '{}' must be a number above 0, of at most {} digits behind the point",
                                 shown(word), shown(rule), kMostDigits));
  return millionths;
}

MixedPath mixed_path_of(const std::string& each) {
  const std::string rule(trim(each));
  const size_t equals = rule.rfind('=');
  const std::string path(trim(rule.substr(0, std::min(equals, rule.size()))));
  if (equals == std::string::npos || path.empty())
    throw InputError(
        fmt::format("'{}' is no corpus of a mix; write PATH=WEIGHT, such as corpus.jsonl=3", shown(rule)));
  return {path, millionths_of(std::string(trim(rule.substr(equals + 1))), rule)};
}

}  // namespace

std::vector<MixedPath> mixed_paths(const std::string& text) {
  std::vector<MixedPath> paths;
  if (trim(text).empty()) return paths;
  int64_t divisor = 0, together = 0;
  for (const std::string& each : split(text, ',')) {
    paths.push_back(mixed_path_of(each));
    const MixedPath& last = paths.back();
    if (std::ranges::count(paths, last.path, &MixedPath::path) > 1)
      throw InputError(fmt::format("the corpus '{}' is given twice; keep one", shown(last.path)));
    divisor = std::gcd(divisor, last.weight);
  }
  for (MixedPath& each : paths) together += each.weight /= divisor;
  if (together > kMostTogether)
    throw InputError(fmt::format("the weights are as {} of {} sequences for '{}'; round them, so that they sum to {} at most",
                                 with_thousands(paths[0].weight), with_thousands(together), shown(paths[0].path),
                                 with_thousands(kMostTogether)));
  return paths;
}

}  // namespace trainyard::config
