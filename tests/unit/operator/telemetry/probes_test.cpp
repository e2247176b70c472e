#include "telemetry/probes.h"

#include <catch2/catch.hpp>

using namespace trainyard;
using namespace trainyard::telemetry;
using Catch::Contains;
using std::chrono::seconds;

namespace {

const Probes::Clock::time_point kStart{};

int status_of(const Probes& probes, const char* path, seconds after = seconds(0)) {
  return probes.answer({.method = "GET", .path = path}, kStart + after).status;
}

}  // namespace

TEST_CASE("probes: alive from the start, and a loop that has stopped turning is not", "[probes]") {
  Probes probes;
  CHECK(status_of(probes, "/healthz", seconds(3600)) == 200);
  probes.beat(kStart);
  CHECK(status_of(probes, "/healthz", seconds(59)) == 200);
  const auto answer = probes.answer({.method = "GET", .path = "/healthz"}, kStart + seconds(75));
  CHECK(answer.status == 500);
  CHECK(answer.body == "the operator's loop has not turned for 75 s\n");
  probes.beat(kStart + seconds(75));
  CHECK(status_of(probes, "/healthz", seconds(75)) == 200);
}

TEST_CASE("probes: ready once the loop turns and every part is, and what is missing is named", "[probes]") {
  Probes probes;
  CHECK(status_of(probes, "/readyz") == 503);
  probes.set_ready("caches", false);
  probes.set_ready("webhook", true);
  probes.beat(kStart);
  CHECK(probes.answer({.method = "GET", .path = "/readyz"}, kStart).body == "not ready yet: caches\n");
  probes.set_ready("caches", true);
  CHECK(status_of(probes, "/readyz") == 200);
  probes.set_ready("webhook", false);
  CHECK(status_of(probes, "/readyz") == 503);
}

TEST_CASE("probes: other paths and methods are refused", "[probes]") {
  const Probes probes;
  CHECK(status_of(probes, "/") == 404);
  CHECK(probes.answer({.method = "POST", .path = "/healthz"}, kStart).status == 405);
  const Metrics metrics;
  const auto handler = metrics_handler(metrics);
  CHECK(handler({.method = "GET", .path = "/"}).status == 404);
  CHECK(handler({.method = "PUT", .path = "/metrics"}).status == 405);
  CHECK_THAT(handler({.method = "GET", .path = "/metrics"}).body, Contains("trainyard_operator_leader 0"));
}
