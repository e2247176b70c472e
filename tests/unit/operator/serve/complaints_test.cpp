#include "serve/complaints.h"

#include <catch2/catch.hpp>

using namespace trainyard;
using namespace std::chrono_literals;
using Catch::Contains;
using kube::ApiError;
using kube::ErrorKind;
using serve::Complaints;

namespace {

const Complaints::Now kStart{1000h};

ApiError error(ErrorKind kind, int status, const std::string& message) {
  return {.kind = kind, .http_status = status, .message = message};
}

Complaints complaints() {
  return {"https://a:1", "/k/config, context c", "manifests/rbac.yaml"};
}

}  // namespace

TEST_CASE("complaints: a server that is away is one line, whoever notices and however long each attempt took",
          "[serve]") {
  Complaints all = complaints();
  const auto away = [](int took) {
    return error(ErrorKind::NotSent, 0, "Failed to connect to a port 1 after " + std::to_string(took) + " ms");
  };
  CHECK(
      all.failed("pods", away(3), kStart) ==
      "the API server https://a:1 (/k/config, context c): Failed to connect to a port 1 after 3 ms; it is tried again");
  CHECK_FALSE(all.failed("services", away(17), kStart + 1s));
  CHECK(all.failed("pods", error(ErrorKind::NotSent, 0, "SSL certificate problem"), kStart + 2s));
  CHECK_FALSE(all.answered(0));
  CHECK_FALSE(all.answered(503));
  CHECK(all.answered(200) == "the API server https://a:1 answers");
  CHECK_FALSE(all.answered(200));
  CHECK(all.failed("pods", away(3), kStart + 3s));
}

TEST_CASE("complaints: what lasts is said again after ten minutes", "[serve]") {
  Complaints all = complaints();
  const ApiError refused = error(ErrorKind::Forbidden, 403, "pods is forbidden: User \"u\" cannot list resource");
  CHECK(all.failed("pods", refused, kStart));
  CHECK_FALSE(all.failed("pods", refused, kStart + Complaints::kReminder - 1s));
  CHECK(all.failed("pods", refused, kStart + Complaints::kReminder));
  CHECK_FALSE(all.failed("pods", refused, kStart + Complaints::kReminder + 1s));
}

TEST_CASE("complaints: what is missing is said for each resource, with what grants it, and that it works", "[serve]") {
  Complaints all = complaints();
  CHECK_THAT(all.failed("pods", error(ErrorKind::Forbidden, 403, "cannot list pods"), kStart).value(),
             Contains("pods: cannot list pods; grant it as manifests/rbac.yaml does; it is tried again"));
  CHECK(all.failed("services", error(ErrorKind::Forbidden, 403, "cannot list services"), kStart));
  CHECK_FALSE(all.failed("services", error(ErrorKind::Forbidden, 403, "cannot list another"), kStart));
  CHECK(all.works("pods") == "pods: works now");
  CHECK_FALSE(all.works("pods"));
}

TEST_CASE("complaints: a token that expired and a CRD that is another are named", "[serve]") {
  Complaints all = complaints();
  CHECK_THAT(all.failed("pods", error(ErrorKind::Unauthorized, 401, "Unauthorized"), kStart).value(),
             Contains("https://a:1 does not know who asks (401 Unauthorized): the token or certificate of /k/config"));
  const ApiError missing = error(ErrorKind::NotFound, 404, "the server could not find the requested resource");
  CHECK_THAT(all.failed("pytorchjobs", missing, kStart).value(), Contains("one that does not serve kubeflow.org/v1"));
  CHECK_THAT(all.failed("pytorchjobs/status", missing, kStart).value(), Contains("without the status subresource"));
}

TEST_CASE("complaints: topics are bounded", "[serve]") {
  Complaints all = complaints();
  for (int i = 0; i < 5000; ++i) CHECK(all.failed(std::to_string(i), error(ErrorKind::Forbidden, 403, "no"), kStart));
}
