#include "serve/complaints.h"

#include <fmt/format.h>

#include <utility>

namespace trainyard::serve {
namespace {

using kube::ErrorKind;

constexpr size_t kMostTopics = 1000;

bool is_of_server(const kube::ApiError& error) {
  return error.http_status == 0 || error.http_status == 401 || error.http_status == 429 || error.http_status >= 500;
}

/// What makes it another trouble than the one before: "after 3 ms" does not, nor does the name of an object.
std::string cause_of(const kube::ApiError& error) {
  if (error.kind == ErrorKind::Forbidden || error.kind == ErrorKind::NotFound)
    return fmt::format("{}", error.http_status);
  std::string cause;
  for (const char c : error.message)
    if (c < '0' || c > '9') cause += c;
  return cause;
}

}  // namespace

Complaints::Complaints(std::string server, std::string origin, std::string role)
    : server_(std::move(server)), origin_(std::move(origin)), role_(std::move(role)) {}

std::string Complaints::line_of(const std::string& what, const kube::ApiError& error) const {
  if (error.http_status == 401)
    return fmt::format(
        "the API server {} does not know who asks (401 {}): the token or certificate of {} has expired or was revoked; "
        "renew it: files and plugins are read again each time",
        server_, error.message, origin_);
  if (is_of_server(error)) return fmt::format("the API server {} ({}): {}", server_, origin_, error.message);
  std::string hint;
  if (error.kind == ErrorKind::Forbidden) hint = fmt::format("; grant it as {} does", role_);
  if (error.kind == ErrorKind::NotFound && what.starts_with("pytorchjobs"))
    hint = fmt::format(
        "; the CRD is not installed, or {}: kubectl apply --server-side -f manifests/crd",
        what == "pytorchjobs" ? "one that does not serve kubeflow.org/v1" : "one without the status subresource");
  return fmt::format("{}: {}{}", what, error.message, hint);
}

std::optional<std::string> Complaints::failed(const std::string& what, const kube::ApiError& error, Now now) {
  if (said_.size() > kMostTopics) said_.clear();
  std::string cause = cause_of(error);
  const auto [said, is_new] = said_.try_emplace(is_of_server(error) ? "" : what, Said{cause, now});
  if (!is_new && said->second.cause == cause && now < said->second.at + kReminder) return std::nullopt;
  said->second = {std::move(cause), now};
  return line_of(what, error) + "; it is tried again";
}

std::optional<std::string> Complaints::answered(int status) {
  kube::ApiError answer;
  answer.http_status = status;
  if (is_of_server(answer) || said_.erase("") == 0) return std::nullopt;
  return fmt::format("the API server {} answers", server_);
}

std::optional<std::string> Complaints::works(const std::string& what) {
  if (said_.erase(what) == 0) return std::nullopt;
  return fmt::format("{}: works now", what);
}

}  // namespace trainyard::serve
