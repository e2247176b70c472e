#include "api/field_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/field.h"

namespace trainyard::api {

std::string invalid(const Json& value, std::string_view rule) {
  return fmt::format("Invalid value: {}: {}", shown(value), rule);
}

std::string duplicate(const Json& value) {
  return fmt::format("Duplicate value: {}", shown(value));
}

std::string unsupported(const Json& value, const std::vector<std::string_view>& known) {
  std::vector<std::string> quoted;
  for (const std::string_view each : known) quoted.push_back(fmt::format("\"{}\"", each));
  return fmt::format("Unsupported value: {}: supported values: {}", shown(value), fmt::join(quoted, ", "));
}

void check_word(const std::string& word, const std::vector<std::string_view>& known, const std::string& path,
                const Refuse& refuse) {
  if (!word.empty() && std::ranges::find(known, word) == known.end()) refuse(path, unsupported(word, known));
}

std::string between(int64_t least, int64_t most) {
  return fmt::format("must be between {} and {}, inclusive", least, most);
}

}  // namespace trainyard::api
