#include "kube/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/text.h"

namespace trainyard::kube {
namespace {

constexpr size_t kMessageLimit = 1024;  // an HTML page of a proxy in between is no message

ErrorKind kind_of(int status, std::string_view reason) {
  switch (status) {
    case 401:
      return ErrorKind::Unauthorized;
    case 403:
      return ErrorKind::Forbidden;
    case 404:
      return ErrorKind::NotFound;
    case 409:
      return reason == "AlreadyExists" ? ErrorKind::AlreadyExists : ErrorKind::Conflict;
    case 410:
      return ErrorKind::Gone;
    case 429:
      return ErrorKind::TooMany;
    default:
      if (reason == "Expired") return ErrorKind::Gone;
      return status >= 500 || status == 408 ? ErrorKind::Server : ErrorKind::Invalid;
  }
}

/// A 5xx of a write: the API server answers 500 and 504 also where etcd was only too slow to say that it had stored it,
/// and a gateway 502 whatever happened behind it. 503 with Retry-After is a server that has not begun.
bool may_have_happened(const ApiError& error, Method method) {
  return is_write(method) && error.kind == ErrorKind::Server && !(error.http_status == 503 && error.retry_after);
}

std::string shortened(std::string_view text) {
  std::string line(text.substr(0, kMessageLimit));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return trimmed(std::move(line));
}

ApiError error_of_answer(const Outcome& outcome, Method method) {
  const auto status = parse_body(outcome.body);
  ApiError error{.http_status = outcome.status, .retry_after = outcome.retry_after};
  if (status && text_at(*status, "/kind") == "Status") {
    error.reason = text_at(*status, "/reason");
    error.message = text_at(*status, "/message");
    if (const auto seconds = int_at(*status, "/details/retryAfterSeconds"); seconds && *seconds > 0)
      error.retry_after = std::max(error.retry_after.value_or(std::chrono::milliseconds(0)),
                                   std::chrono::milliseconds(std::min<int64_t>(*seconds, 3600) * 1000));
  }
  error.kind = kind_of(outcome.status, error.reason);
  if (error.message.empty()) error.message = fmt::format("HTTP {}: {}", outcome.status, shortened(outcome.body));
  if (may_have_happened(error, method)) error.kind = ErrorKind::Unknown;
  return error;
}

}  // namespace

ApiError error_of(const Outcome& outcome, Method method) {
  if (outcome.trouble == Trouble::None) return error_of_answer(outcome, method);
  const bool is_certain = is_write(method) ? !outcome.was_sent : outcome.trouble == Trouble::Unreachable;
  ApiError error{.kind = is_certain || outcome.trouble == Trouble::Untrusted ? ErrorKind::NotSent : ErrorKind::Unknown};
  error.http_status = outcome.status;
  error.message = outcome.message;
  if (outcome.trouble == Trouble::TooLarge && !is_write(method)) error.kind = ErrorKind::Invalid;
  if (outcome.trouble == Trouble::Untrusted)
    error.message += "; see certificate-authority, tls-server-name and the client certificate of the kubeconfig";
  return error;
}

ApiError error_of_status(const Json& status) {
  Outcome outcome{.status = static_cast<int>(int_at(status, "/code").value_or(500)), .body = dump(status)};
  return error_of(outcome, Method::Get);
}

std::optional<Json> parse_body(std::string_view body) {
  Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

bool is_gone(const Json& delete_reply) {
  if (text_at(delete_reply, "/kind") == "Status") return text_at(delete_reply, "/status") == "Success";
  const Json* const finalizers = find(delete_reply, "/metadata/finalizers");
  if (finalizers && !finalizers->empty()) return false;
  return !find(delete_reply, "/metadata/deletionTimestamp") ||
         int_at(delete_reply, "/metadata/deletionGracePeriodSeconds").value_or(0) == 0;
}

}  // namespace trainyard::kube
