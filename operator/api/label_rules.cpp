#include "api/label_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace trainyard::api {
namespace {

constexpr size_t kMostCharacters = 63, kLongestPrefix = 253;

bool is_small_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_letter_or_digit(char c) {
  return is_small_or_digit(c) || (c >= 'A' && c <= 'Z');
}

bool is_dns_label(std::string_view name) {
  const auto is_known = [](char c) { return is_small_or_digit(c) || c == '-'; };
  return !name.empty() && std::ranges::all_of(name, is_known) && name.front() != '-' && name.back() != '-';
}

bool is_dns_subdomain(std::string_view name) {
  return name.size() <= kLongestPrefix && std::ranges::all_of(parts_of(name, '.'), is_dns_label);
}

bool has_name_form(std::string_view name) {
  const auto is_known = [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; };
  return !name.empty() && std::ranges::all_of(name, is_known) && is_letter_or_digit(name.front()) &&
         is_letter_or_digit(name.back());
}

std::string too_long(size_t most) {
  return fmt::format("must be no more than {} characters", most);
}

constexpr const char* kLabel =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr const char* kSubdomain =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr const char* kName =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr const char* kValue =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

}  // namespace

std::string label_defect(std::string_view name) {
  if (!is_dns_label(name)) return kLabel;
  return name.size() > kMostCharacters ? too_long(kMostCharacters) : "";
}

std::string qualified_name_defect(std::string_view name) {
  const size_t slash = name.find('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  if (last.find('/') != std::string_view::npos)
    return fmt::format("a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                       kName);
  if (slash == 0) return "prefix part must be non-empty";
  if (slash != std::string_view::npos && !is_dns_subdomain(name.substr(0, slash)))
    return fmt::format("prefix part {}", kSubdomain);
  if (last.empty()) return "name part must be non-empty";
  if (last.size() > kMostCharacters) return fmt::format("name part {}", too_long(kMostCharacters));
  return has_name_form(last) ? "" : fmt::format("name part {}", kName);
}

std::string label_value_defect(std::string_view value) {
  if (value.size() > kMostCharacters) return too_long(kMostCharacters);
  return value.empty() || has_name_form(value) ? "" : kValue;
}

}  // namespace trainyard::api
