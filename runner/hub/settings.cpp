#include "hub/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/lowercase.h"
#include "base/text.h"

namespace trainyard::hub {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostTokenBytes = 4096;
constexpr int64_t kMostSeconds = 86400;

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

bool is_true(const Environment& environment, const std::string& name) {
  const std::string value = lowercase(value_of(environment, name));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

/// "~/x" as the shell reads it.
fs::path expanded(const Environment& environment, const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  return value_of(environment, "HOME") + path.substr(1);
}

/// The first of `names` that is given; "" where none is.
fs::path path_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (const std::string value = value_of(environment, name); !value.empty()) return expanded(environment, value);
  return {};
}

fs::path home_of(const Environment& environment) {
  if (const fs::path home = path_of(environment, {"HF_HOME"}); !home.empty()) return home;
  const fs::path caches = path_of(environment, {"XDG_CACHE_HOME"});
  return (caches.empty() ? expanded(environment, "~/.cache") : caches) / "huggingface";
}

std::chrono::milliseconds seconds_of(const Environment& environment, const std::string& name,
                                     std::chrono::milliseconds unless_given) {
  const std::string value = value_of(environment, name);
  if (value.empty()) return unless_given;
  const auto seconds = parse_int(value);
  if (!seconds || *seconds < 1 || *seconds > kMostSeconds)
    throw InputError(fmt::format("{} is '{}'; whole seconds from 1 to {} are needed", name, value, kMostSeconds));
  return std::chrono::seconds(*seconds);
}

std::string endpoint_of(const Environment& environment, const std::string& unless_given) {
  std::string endpoint = value_of(environment, "HF_ENDPOINT");
  if (endpoint.empty()) return unless_given;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7F && c != '?' && c != '#' && c != '@'; };
  if ((endpoint.starts_with("https://") || endpoint.starts_with("http://")) && std::ranges::all_of(endpoint, is_plain))
    return endpoint;
  throw InputError(
      "HF_ENDPOINT must be an address that begins with https:// or http://, without a user or a question "
      "mark in it");  // its value may hold a password
}

std::string token_of(const Environment& environment, const fs::path& home) {
  if (is_true(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) return "";
  for (const char* const name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (const std::string token = clean_token(value_of(environment, name), name); !token.empty()) return token;
  const fs::path named = path_of(environment, {"HF_TOKEN_PATH"});
  const fs::path file = named.empty() ? home / "token" : named;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return "";
  return clean_token(read_file(file, kMostTokenBytes), file.string());
}

}  // namespace

std::string clean_token(const std::string& token, const std::string& source) {
  std::string clean(trim(token));
  if (std::ranges::any_of(clean, [](char c) { return c <= ' ' || c >= 0x7F; }))
    throw InputError(fmt::format("{}: a token has no spaces, line breaks or accents in it", source));
  return clean;
}

Settings settings_of(const Environment& environment) {
  Settings settings;
  const fs::path home = home_of(environment);
  settings.home = home;
  settings.endpoint = endpoint_of(environment, settings.endpoint);
  settings.cache = path_of(environment, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  if (settings.cache.empty()) settings.cache = home / "hub";
  settings.authorities = path_of(environment, {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"});
  settings.is_offline = is_true(environment, "HF_HUB_OFFLINE") || is_true(environment, "TRANSFORMERS_OFFLINE");
  settings.answer_timeout = seconds_of(environment, "HF_HUB_ETAG_TIMEOUT", settings.answer_timeout);
  settings.silence = seconds_of(environment, "HF_HUB_DOWNLOAD_TIMEOUT", settings.silence);
  settings.token = token_of(environment, home);
  return settings;
}

}  // namespace trainyard::hub
