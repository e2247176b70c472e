#include "webhook/admission.h"

#include <catch2/catch.hpp>

#include "http/json_body.h"

using namespace trainyard;
using namespace trainyard::webhook;

namespace {

Json job(int master_replicas = 1) {
  const Json pod_template = {{"spec", {{"containers", {{{"name", "pytorch"}, {"image", "example.org/train:1"}}}}}}};
  return {
      {"apiVersion", "kubeflow.org/v1"},
      {"kind", "PyTorchJob"},
      {"metadata", {{"name", "llama"}, {"namespace", "team"}}},
      {"spec", {{"pytorchReplicaSpecs", {{"Master", {{"replicas", master_replicas}, {"template", pod_template}}}}}}}};
}

Json review_of(const char* operation, const Json& object, const Json& old_object = nullptr) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "u-1"},
            {"kind", {{"group", "kubeflow.org"}, {"version", "v1"}, {"kind", "PyTorchJob"}}},
            {"operation", operation},
            {"object", object},
            {"oldObject", old_object}}}};
}

Json answer_to(const Json& review_request) {
  return Json::parse(review(review_request.dump()).body);
}

std::string refusal_of(Json request, const char* pointer, const Json& value) {
  request[Json::json_pointer(pointer)] = value;
  try {
    static_cast<void>(review(request.dump()));
  } catch (const http::BadBody& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("admission: a good job is allowed, and the answer has the request's uid", "[webhook]") {
  const Json answer = answer_to(review_of("CREATE", job()));
  CHECK(answer["apiVersion"] == "admission.k8s.io/v1");
  CHECK(answer["kind"] == "AdmissionReview");
  CHECK(answer["response"] == Json{{"uid", "u-1"}, {"allowed", true}});
  CHECK(answer_to(review_of("UPDATE", job(), job()))["response"]["allowed"] == true);
}

TEST_CASE("admission: a bad one is refused with 403, Forbidden and the finding", "[webhook]") {
  const Json response = answer_to(review_of("CREATE", job(2)))["response"];
  CHECK(response["allowed"] == false);
  CHECK(response["uid"] == "u-1");
  CHECK(response["status"]["code"] == 403);
  CHECK(response["status"]["reason"] == "Forbidden");
  CHECK(response["status"]["message"] == "spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1");
}

TEST_CASE("admission: a misspelt field of a pod is refused with the name that is meant", "[webhook]") {
  Json misspelt = job();
  misspelt["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["comand"] = {"train"};
  const Json response = answer_to(review_of("CREATE", misspelt))["response"];
  CHECK(response["allowed"] == false);
  CHECK(response["status"]["message"] ==
        "spec.pytorchReplicaSpecs[Master].template.spec.containers[0].comand: is no field of this resource; did you mean "
        "command?");
}

TEST_CASE("admission: warnings are handed on", "[webhook]") {
  Json warned = job();
  warned["spec"]["pytorchReplicaSpecs"]["Worker"] = warned["spec"]["pytorchReplicaSpecs"]["Master"];
  warned["spec"]["elasticPolicy"] = {{"nProcPerNode", 2}};
  const Json response = answer_to(review_of("CREATE", warned))["response"];
  CHECK(response["allowed"] == true);
  CHECK(response["warnings"] == Json{"spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"});
}

TEST_CASE("admission: deletions and the status are allowed unseen", "[webhook]") {
  CHECK(answer_to(review_of("DELETE", nullptr, job(2)))["response"]["allowed"] == true);
  CHECK(answer_to(review_of("CONNECT", job(2)))["response"]["allowed"] == true);
  Json status = review_of("UPDATE", job(2), job(2));
  status["request"]["subResource"] = "status";
  CHECK(answer_to(status)["response"]["allowed"] == true);
}

TEST_CASE("admission: what is no review is refused with the place and what is expected", "[webhook]") {
  const Json good = review_of("UPDATE", job(), job());
  CHECK(refusal_of(good, "/apiVersion", "admission.k8s.io/v1beta1") ==
        R"(/apiVersion is "admission.k8s.io/v1beta1"; admission.k8s.io/v1 is expected)");
  CHECK(refusal_of(good, "/kind", 7) == "/kind is of type number; AdmissionReview is expected");
  CHECK(refusal_of(good, "/request", nullptr) == "/request is of type null; an object is expected");
  CHECK(refusal_of(good, "/request/uid", "") == "/request/uid is \"\"; a text is expected");
  CHECK(refusal_of(good, "/request/object", nullptr) == "/request/object is of type null; an object is expected");
  CHECK(refusal_of(good, "/request/object", {1, 2}) == "/request/object is of type array; an object is expected");
  CHECK(refusal_of(good, "/request/oldObject", nullptr) == "/request/oldObject is of type null; an object is expected");
  CHECK(refusal_of(good, "/request/kind/kind", "Pod") == R"(/request/kind/kind is "Pod"; PyTorchJob is expected)");
  CHECK_THROWS_WITH(review("[]"), "the body is no object; an AdmissionReview is expected");
  CHECK_THROWS_AS(review("{"), http::BadBody);
}

TEST_CASE("admission: the handler answers at its path, tells the outcome, and takes POST alone", "[webhook]") {
  std::vector<bool> outcomes;
  const auto handler = admission_handler([&](bool is_allowed, double) { outcomes.push_back(is_allowed); });
  const std::string path(kPath);
  CHECK(handler({.method = "POST", .path = path, .body = review_of("CREATE", job()).dump()}).status == 200);
  CHECK(handler({.method = "POST", .path = path, .body = review_of("CREATE", job(2)).dump()}).status == 200);
  CHECK(outcomes == std::vector{true, false});
  const auto bad = handler({.method = "POST", .path = path, .body = "x"});
  CHECK(bad.status == 400);
  CHECK_THAT(bad.body, Catch::StartsWith("the body is no JSON: "));
  CHECK(handler({.method = "GET", .path = path}).status == 405);
  CHECK(handler({.method = "POST", .path = "/"}).status == 404);
}
