#include "webhook/admission.h"

#include <fmt/format.h>

#include <chrono>

#include "api/job.h"
#include "http/json_body.h"

namespace trainyard::webhook {
namespace {

constexpr const char* kReviewVersion = "admission.k8s.io/v1";
constexpr const char* kReviewKind = "AdmissionReview";

using http::BadBody;

/// What a value is instead of what it should be, in a few words.
std::string described(const Json* value) {
  if (!value) return "missing";
  if (value->is_string() && value->get_ref<const std::string&>().size() < 100) return dump(*value);
  return std::string("of type ") + value->type_name();
}

void require(const Json& review, const char* pointer, std::string_view expected) {
  if (text_at(review, pointer) != expected)
    throw BadBody(fmt::format("{} is {}; {} is expected", pointer, described(find(review, pointer)), expected));
}

const Json& object_at(const Json& review, const char* pointer) {
  const Json* const value = find(review, pointer);
  if (!value || !value->is_object())
    throw BadBody(fmt::format("{} is {}; an object is expected", pointer, described(value)));
  return *value;
}

bool is_validated(const Json& review) {
  const std::string operation = text_at(review, "/request/operation");
  return (operation == "CREATE" || operation == "UPDATE") && text_at(review, "/request/subResource").empty();
}

/// Deletions, connections and the status are none of the rules' business: allowed.
api::Verdict verdict_on(const Json& review) {
  if (!is_validated(review)) return {};
  require(review, "/request/kind/group", "kubeflow.org");
  require(review, "/request/kind/kind", api::kKind);
  const Json& job = object_at(review, "/request/object");
  const bool is_update = text_at(review, "/request/operation") == "UPDATE";
  return api::validate(job, is_update ? &object_at(review, "/request/oldObject") : nullptr);
}

Json response_of(const std::string& uid, const api::Verdict& verdict) {
  Json response = {{"uid", uid}, {"allowed", verdict.is_allowed()}};
  if (!verdict.warnings.empty()) response["warnings"] = verdict.warnings;
  if (!verdict.is_allowed())
    response["status"] = {{"code", 403}, {"reason", "Forbidden"}, {"message", verdict.message()}};
  return response;
}

}  // namespace

Reviewed review(const std::string& body) {
  const Json review = http::parse_body(body);
  if (!review.is_object()) throw BadBody("the body is no object; an AdmissionReview is expected");
  require(review, "/kind", kReviewKind);
  require(review, "/apiVersion", kReviewVersion);
  object_at(review, "/request");
  const std::string uid = text_at(review, "/request/uid");
  if (uid.empty()) throw BadBody("/request/uid is " + described(find(review, "/request/uid")) + "; a text is expected");
  const api::Verdict verdict = verdict_on(review);
  const Json answer = {{"kind", kReviewKind}, {"apiVersion", kReviewVersion}, {"response", response_of(uid, verdict)}};
  return {dump(answer), verdict.is_allowed()};
}

http::Handler admission_handler(std::function<void(bool is_allowed, double seconds)> on_review) {
  return [on_review = std::move(on_review)](const http::Request& request) -> http::Response {
    if (request.path != kPath) return {.status = 404, .body = fmt::format("there is nothing here; try {}\n", kPath)};
    if (request.method != "POST") return {.status = 405, .body = "POST only\n"};
    const auto start = std::chrono::steady_clock::now();
    try {
      Reviewed reviewed = review(request.body);
      on_review(reviewed.is_allowed, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      return {.body = std::move(reviewed.body), .content_type = "application/json"};
    } catch (const BadBody& error) {
      return {.status = 400, .body = fmt::format("{}\n", error.what())};
    }
  };
}

}  // namespace trainyard::webhook
