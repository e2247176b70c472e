#include "s3/signature.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "common/hmac.h"
#include "web/address.h"

namespace trainyard::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string date_of(const Scope& scope) {
  return scope.time.substr(0, 8);
}

std::string credential_scope(const Scope& scope) {
  return fmt::format("{}/{}/{}/aws4_request", date_of(scope), scope.region, scope.service);
}

/// "host;x-amz-date"
std::string signed_headers(const Request& request) {
  std::string names;
  for (const auto& [name, value] : request.headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

/// Spaces at the ends go, and of several in a row one is left.
std::string normalized(std::string_view value) {
  std::string result;
  for (const char c : trim(value))
    if (c != ' ' || !result.ends_with(' ')) result += c;
  return result;
}

std::string signing_key(const Scope& scope, const std::string& secret_key) {
  std::string key = hmac_sha256("AWS4" + secret_key, date_of(scope));
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service), std::string_view("aws4_request")})
    key = hmac_sha256(key, part);
  return key;
}

}  // namespace

std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : query) encoded.emplace_back(web::percent_encoded(name), web::percent_encoded(value));
  std::ranges::sort(encoded);
  std::string result;
  for (const auto& [name, value] : encoded) result += fmt::format("{}{}={}", result.empty() ? "" : "&", name, value);
  return result;
}

std::string canonical_request(const Request& request) {
  std::string text = fmt::format("{}\n{}\n{}\n", request.method, request.path, canonical_query(request.query));
  for (const auto& [name, value] : request.headers) text += fmt::format("{}:{}\n", name, normalized(value));
  return fmt::format("{}\n{}\n{}", text, signed_headers(request), request.payload);
}

std::string string_to_sign(const Request& request, const Scope& scope) {
  return fmt::format("{}\n{}\n{}\n{}", kAlgorithm, scope.time, credential_scope(scope),
                     hex(sha256(canonical_request(request))));
}

std::string authorization(const Request& request, const Scope& scope, const std::string& access_key,
                          const std::string& secret_key) {
  const std::string signature = hex(hmac_sha256(signing_key(scope, secret_key), string_to_sign(request, scope)));
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm, access_key,
                     credential_scope(scope), signed_headers(request), signature);
}

std::string time_to_sign(std::chrono::system_clock::time_point now) {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

}  // namespace trainyard::s3
