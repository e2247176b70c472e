#include "s3/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/lowercase.h"
#include "base/text.h"
#include "s3/xml.h"

namespace trainyard::s3 {
namespace {

constexpr std::array<std::string_view, 4> kChecksums{"crc64nvme", "crc32c", "crc32", "sha256"};

/// At most 200 printable characters of what a server says.
std::string printable(std::string text) {
  std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; });
  return text.substr(0, 200);
}

/// Of what is encrypted with a key of KMS or of the caller, and of what came in parts, the ETag is no MD5.
std::string md5_of(const web::Answer& answer, std::string_view etag) {
  const std::string encryption = answer.header("x-amz-server-side-encryption");
  const bool is_other = (!encryption.empty() && encryption != "AES256") ||
                        !answer.header("x-amz-server-side-encryption-customer-algorithm").empty();
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (is_other || etag.size() != 34 || !std::ranges::all_of(etag.substr(1, 32), is_digit)) return "";
  return std::string(etag.substr(1, 32));
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = c >= 'A' && c <= 'F' ? static_cast<char>(c + ('a' - 'A')) : c;
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/// "a+b%2Fc" is "a b/c": how a list's keys come with encoding-type=url.
std::string decoded(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const int high = text[at] == '%' && at + 2 < text.size() ? digit_of(text[at + 1]) : -1;
    const int low = high >= 0 ? digit_of(text[at + 2]) : -1;
    if (low >= 0)
      result += static_cast<char>(high * 16 + low), at += 2;
    else
      result += text[at] == '+' ? ' ' : text[at];
  }
  return result;
}

std::string said_by(const Told& told) {
  if (told.code.empty()) return "";
  return told.message.empty() ? fmt::format(" ({})", told.code) : fmt::format(" ({}: {})", told.code, told.message);
}

std::string endpoint_in_words(const Settings& settings) {
  return settings.endpoint.empty() ? fmt::format("Amazon S3 in {}", settings.region) : settings.endpoint;
}

[[noreturn]] void refuse_lost(const web::Answer& answer, const std::string& what, const Settings& settings) {
  const std::string server = endpoint_in_words(settings);
  switch (answer.failure) {
    case web::Failure::Unreachable:
      throw UnreachableError(
          fmt::format("{}: {} cannot be reached: {}; look at the network, at AWS_REGION and at AWS_ENDPOINT_URL_S3",
                      what, server, answer.reason));
    case web::Failure::Distrusted:
      throw InputError(
          fmt::format("{}: the certificate of {} is not trusted: {}; AWS_CA_BUNDLE names a file of authorities", what,
                      server, answer.reason));
    default:
      throw PeerError(fmt::format("{}: {} was lost again and again: {}", what, server, answer.reason));
  }
}

/// "AuthorizationHeaderMalformed", "PermanentRedirect" and the like: another region has the bucket.
[[noreturn]] void refuse_region(const std::string& region, const std::string& what, const Settings& settings) {
  throw InputError(fmt::format("{}: the bucket lies in {}, but {} was asked; set AWS_REGION={}", what, region,
                               settings.region, region));
}

}  // namespace

Facts facts_of(const web::Answer& answer, const std::string& what) {
  const auto size = parse_int(answer.header("content-length"));
  Facts facts{.size = size && *size >= 0 ? static_cast<uint64_t>(*size) : 0,
              .etag = answer.header("etag"),
              .checksums = {},
              .md5 = {}};
  if (!size || *size < 0 || facts.etag.empty())
    throw InputError(fmt::format("{}: the answer has no size or no ETag, so it is no object of S3", what));
  const std::string type = answer.header("x-amz-checksum-type");
  const bool came_in_parts = facts.etag.find('-') != std::string::npos;
  for (const std::string_view name : kChecksums) {
    const std::string value = answer.header(fmt::format("x-amz-checksum-{}", name));
    // A check of the parts' checks is marked by "-3" behind it and by its type. Some servers mark it by neither.
    const bool is_whole = type == "FULL_OBJECT" || (type.empty() && (!came_in_parts || name == "crc64nvme"));
    if (!value.empty() && is_whole && value.find('-') == std::string::npos) facts.checksums.emplace(name, value);
  }
  facts.md5 = md5_of(answer, facts.etag);
  return facts;
}

Told told_by(const web::Answer& answer) {
  Told told{.code = {}, .message = {}, .region = printable(answer.header("x-amz-bucket-region"))};
  if (answer.text.find('<') == std::string::npos) return told;
  try {
    const Element error = parse_xml(answer.text, "");
    if (error.name != "Error") return told;
    told.code = printable(error.text_of("Code"));
    told.message = printable(error.text_of("Message"));
    if (told.region.empty()) told.region = printable(error.text_of("Region"));
  } catch (const InputError&) {  // a proxy's page: the status says enough
  }
  return told;
}

Page page_of(const std::string& text, const std::string& what) {
  const Element result = parse_xml(text, what);
  if (result.name != "ListBucketResult") throw InputError(fmt::format("{}: the answer is no list of a bucket", what));
  const bool is_encoded = result.text_of("EncodingType") == "url";
  Page page;
  for (const Element& each : result.children) {
    if (each.name != "Contents") continue;
    const Element* const key = each.find("Key");
    const auto size = parse_int(each.text_of("Size"));
    if (!key || key->text.empty() || !size || *size < 0)
      throw InputError(fmt::format("{}: an entry of the list has no key or no size", what));
    page.objects.push_back({.key = is_encoded ? decoded(key->text) : key->text,
                            .size = static_cast<uint64_t>(*size),
                            .etag = each.text_of("ETag")});
  }
  if (result.text_of("IsTruncated") == "true") {
    page.next = result.text_of("NextContinuationToken");
    if (page.next.empty()) throw InputError(fmt::format("{}: the list is cut off and names no next page", what));
  }
  return page;
}

bool may_pass(const web::Answer& answer, const Told& told) {
  constexpr std::array<std::string_view, 7> kPassing{
      "RequestTimeout",   "XAmzContentSHA256Mismatch",  "BadDigest", "InternalError",
      "OperationAborted", "ConditionalRequestConflict", "SlowDown"};
  return is_worth_retry(answer) || std::ranges::find(kPassing, told.code) != kPassing.end();
}

bool has_expired(const Told& told) {
  return told.code == "ExpiredToken" || told.code == "TokenRefreshRequired" || told.code == "ExpiredTokenException";
}

void refuse(const web::Answer& answer, const std::string& what, const std::string& source, const Settings& settings) {
  if (answer.failure != web::Failure::None) refuse_lost(answer, what, settings);
  const Told told = told_by(answer);
  const std::string server = endpoint_in_words(settings);
  if (!told.region.empty() && told.region != settings.region) refuse_region(told.region, what, settings);
  if (answer.status >= 300 && answer.status < 400)
    throw InputError(
        fmt::format("{}: {} redirects elsewhere{}; name the right server in AWS_REGION or "
                    "AWS_ENDPOINT_URL_S3",
                    what, server, said_by(told)));
  if (told.code == "NoSuchBucket") throw InputError(fmt::format("{}: there is no such bucket at {}", what, server));
  if (told.code == "NoSuchKey") throw InputError(fmt::format("{}: there is no such object at {}", what, server));
  if (told.code == "InvalidObjectState")
    throw InputError(fmt::format("{}: it is archived; restore it before it is read", what));
  if (told.code == "RequestTimeTooSkewed")
    throw InputError(
        fmt::format("{}: the clocks of this machine and of {} differ too much; set this one right", what, server));
  if (told.code == "InvalidAccessKeyId" || told.code == "SignatureDoesNotMatch" || told.code == "InvalidToken" ||
      has_expired(told) || answer.status == 401)
    throw InputError(fmt::format("{}: {} does not take the credentials of {}{}", what, server, source, said_by(told)));
  if (answer.status == 403)
    throw InputError(
        fmt::format("{}: {} denies access to the credentials of {}{}", what, server, source, said_by(told)));
  if (answer.status == 404) throw InputError(fmt::format("{}: there is no such object or bucket at {}", what, server));
  if (may_pass(answer, told))
    throw PeerError(fmt::format("{}: {} answered HTTP {}{} again and again; try later", what, server, answer.status,
                                said_by(told)));
  throw InputError(fmt::format("{}: {} answered HTTP {}{}", what, server, answer.status, said_by(told)));
}

}  // namespace trainyard::s3
