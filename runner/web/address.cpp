#include "web/address.h"

#include <fmt/format.h>

#include "base/lowercase.h"
#include "common/curl.h"

namespace trainyard::web {
namespace {

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  const CurlText owner(text);
  return text;
}

bool is_web(CURLU* url) {
  const std::string scheme = part_of(url, CURLUPART_SCHEME);
  return scheme == "https" || scheme == "http";
}

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view kept) {
  std::string result;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-_.~").find(c) != std::string_view::npos ||
                          kept.find(c) != std::string_view::npos;
    result += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string origin_of(const std::string& address) {
  const CurlUrl url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK || !is_web(url.get())) return "";
  return lowercase(fmt::format("{}://{}:{}", part_of(url.get(), CURLUPART_SCHEME), part_of(url.get(), CURLUPART_HOST),
                               part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT)));
}

std::optional<std::string> redirected(const std::string& address, const std::string& location) {
  const CurlUrl url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const bool was_secure = part_of(url.get(), CURLUPART_SCHEME) == "https";
  if (location.empty() || curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK) return std::nullopt;
  if (!is_web(url.get()) || (was_secure && part_of(url.get(), CURLUPART_SCHEME) != "https")) return std::nullopt;
  return part_of(url.get(), CURLUPART_URL);
}

}  // namespace trainyard::web
