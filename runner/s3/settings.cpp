#include "s3/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/lowercase.h"
#include "base/text.h"
#include "web/address.h"

namespace trainyard::s3 {
namespace {

constexpr int kMostAttempts = 100;

bool is_true(const std::string& value) {
  return lowercase(value) == "true" || value == "1";
}

std::string checked_region(const std::string& region) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  if (!region.empty() && region.size() <= 64 && std::ranges::all_of(lowercase(region), fits)) return region;
  throw InputError(fmt::format("AWS_REGION is '{}'; a region such as eu-central-1 is needed", region));
}

/// "https://host:port". Its value may hold a password, so it is not printed.
std::string checked_endpoint(std::string endpoint, std::string_view from) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const size_t begin = endpoint.find("://");
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7F && c != '?' && c != '#' && c != '@' && c != '/'; };
  const bool is_web = endpoint.starts_with("https://") || endpoint.starts_with("http://");
  if (is_web && endpoint.size() > begin + 3 && std::ranges::all_of(endpoint.substr(begin + 3), is_plain))
    return endpoint;
  throw InputError(
      fmt::format("{} must be an address that begins with https:// or http://, with a host and perhaps a port, and "
                  "without a user, a path or a question mark",
                  from));
}

/// What a service's own variable names, else the variable of all, else the same of the profile; "" where none is given.
std::string endpoint_of(const Environment& environment, const Profile& profile, std::string_view variable,
                        std::string_view service) {
  if (is_true(value_of(environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) ||
      is_true(value_of(profile.settings, "ignore_configured_endpoint_urls")))
    return "";
  for (const std::string_view name : {variable, std::string_view("AWS_ENDPOINT_URL")})
    if (const std::string value = value_of(environment, name); !value.empty()) return checked_endpoint(value, name);
  const std::string own = value_of(profile.for_services, fmt::format("{}.endpoint_url", service));
  const std::string value = own.empty() ? value_of(profile.settings, "endpoint_url") : own;
  if (value.empty()) return "";
  return checked_endpoint(value, fmt::format("endpoint_url of the profile '{}'", profile.name));
}

std::string region_of(const Environment& environment, const Profile& profile, const std::string& unless_given) {
  for (const char* const name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (const std::string value = value_of(environment, name); !value.empty()) return checked_region(value);
  const std::string value = value_of(profile.settings, "region");
  return value.empty() ? unless_given : checked_region(value);
}

std::string domain_of(const std::string& region) {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

bool is_path_style(const Profile& profile, const std::string& endpoint) {
  const std::string style = lowercase(value_of(profile.settings, "s3.addressing_style"));
  if (style == "path" || style == "virtual") return style == "path";
  if (style.empty() || style == "auto") return !endpoint.empty();
  throw InputError(fmt::format("addressing_style of the profile '{}' is '{}'; path, virtual or auto is needed",
                               profile.name, style));
}

int attempts_of(const Environment& environment, const Profile& profile, int unless_given) {
  std::string value = value_of(environment, "AWS_MAX_ATTEMPTS");
  if (value.empty()) value = value_of(profile.settings, "max_attempts");
  if (value.empty()) return unless_given;
  const auto attempts = parse_int(value);
  if (!attempts || *attempts < 1 || *attempts > kMostAttempts)
    throw InputError(
        fmt::format("AWS_MAX_ATTEMPTS is '{}'; a whole number from 1 to {} is needed", value, kMostAttempts));
  return static_cast<int>(*attempts);
}

/// TRAINYARD_CACHE, else where other caches of the user are.
std::filesystem::path cache_of(const Environment& environment) {
  if (const std::string cache = value_of(environment, "TRAINYARD_CACHE"); !cache.empty())
    return std::filesystem::path(cache) / "s3";
  const std::string caches = value_of(environment, "XDG_CACHE_HOME");
  return std::filesystem::path(caches.empty() ? value_of(environment, "HOME") + "/.cache" : caches) / "trainyard" /
         "s3";
}

void require_supported(const Environment& environment) {
  for (const char* const name : {"AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"})
    if (is_true(value_of(environment, name)))
      throw InputError(fmt::format("{} is set, and is not read here; name that endpoint in AWS_ENDPOINT_URL_S3", name));
}

}  // namespace

Settings settings_of(const Environment& environment) {
  require_supported(environment);
  Settings settings{.environment = environment, .profile = read_profile(environment)};
  const Profile& profile = settings.profile;
  settings.region = region_of(environment, profile, settings.region);
  settings.endpoint = endpoint_of(environment, profile, "AWS_ENDPOINT_URL_S3", "s3");
  settings.sts_endpoint = endpoint_of(environment, profile, "AWS_ENDPOINT_URL_STS", "sts");
  if (settings.sts_endpoint.empty())
    settings.sts_endpoint = fmt::format("https://sts.{}.{}", settings.region, domain_of(settings.region));
  settings.is_path_style = is_path_style(profile, settings.endpoint);
  settings.attempts = attempts_of(environment, profile, settings.attempts);
  settings.authorities = value_of(environment, "AWS_CA_BUNDLE");
  if (settings.authorities.empty()) settings.authorities = value_of(profile.settings, "ca_bundle");
  settings.cache = cache_of(environment);
  return settings;
}

namespace {

/// A name with dots is none that a certificate for *.s3.amazonaws.com covers.
bool is_in_path(const Settings& settings, const std::string& bucket) {
  return settings.is_path_style || bucket.find('.') != std::string::npos;
}

}  // namespace

std::string server_of(const Settings& settings, const std::string& bucket) {
  const std::string endpoint = settings.endpoint.empty()
                                   ? fmt::format("https://s3.{}.{}", settings.region, domain_of(settings.region))
                                   : settings.endpoint;
  if (is_in_path(settings, bucket)) return endpoint;
  const size_t host = endpoint.find("://") + 3;
  return fmt::format("{}{}.{}", endpoint.substr(0, host), bucket, endpoint.substr(host));
}

std::string path_of(const Settings& settings, const Name& name) {
  const std::string key = web::percent_encoded(name.key, "/");
  return is_in_path(settings, name.bucket) ? fmt::format("/{}{}{}", name.bucket, key.empty() ? "" : "/", key)
                                           : "/" + key;
}

}  // namespace trainyard::s3
