#include "s3/name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::s3 {
namespace {

constexpr size_t kMostKeyBytes = 1024;

bool is_bucket_character(char c) {
  // Amazon takes no new buckets with capitals and underscores, but old ones have them, and so have other servers.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

bool is_bucket(std::string_view text) {
  return text.size() >= 3 && text.size() <= 63 && std::ranges::all_of(text, is_bucket_character) &&
         text.front() != '.' && text.back() != '.' && text.find("..") == std::string_view::npos;
}

bool leads_out(std::string_view key) {
  const auto parts = split(key, '/');
  return std::ranges::any_of(parts, [](const std::string& part) { return part == "." || part == ".."; });
}

}  // namespace

bool is_name(std::string_view text) {
  return text.starts_with(kScheme);
}

Name parse_name(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return InputError(fmt::format("'{}' is no name of S3: {}; s3://bucket/key is needed", text, what));
  };
  if (!is_name(text)) throw wrong("it does not begin with s3://");
  const std::string_view rest = text.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  Name name{std::string(rest.substr(0, slash)), std::string(rest.substr(std::min(slash + 1, rest.size())))};
  if (!is_bucket(name.bucket))
    throw wrong("a bucket has 3 to 63 letters, digits, '-' and '.' with none of '.' at an end");
  if (name.key.size() > kMostKeyBytes) throw wrong("a key has at most 1024 bytes");
  if (std::ranges::any_of(name.key, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; }))
    throw wrong("it has a character that cannot be printed");
  if (leads_out(name.key)) throw wrong("a part of it is '.' or '..'");
  return name;
}

std::string to_string(const Name& name) {
  return fmt::format("{}{}/{}", kScheme, name.bucket, name.key);
}

}  // namespace trainyard::s3
