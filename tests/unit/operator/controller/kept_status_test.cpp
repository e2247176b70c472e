#include "controller/kept_status.h"

#include <catch2/catch.hpp>

using namespace trainyard;
using namespace trainyard::controller;

namespace {

api::JobStatus written() {
  api::JobStatus status;
  status.ready = "1/2";
  status.restarts.generation = 3;
  status.restarts.count = 1;
  status.restarts.disruptions = 1;
  status.restarts.formed = 2;
  return status;
}

KeptStatus kept_after(void (*drop)(api::JobStatus& status)) {
  api::JobStatus kept = written();
  drop(kept);
  return kept_status(written(), kept);
}

}  // namespace

TEST_CASE("kept status: the worst of what was dropped tells", "[controller]") {
  CHECK(kept_after([](api::JobStatus&) {}) == KeptStatus::Whole);
  CHECK(kept_after([](api::JobStatus& kept) { kept.ready.clear(); }) == KeptStatus::WithoutReady);
  CHECK(kept_after([](api::JobStatus& kept) { kept.restarts.count = 0; }) == KeptStatus::WithoutCounts);
  CHECK(kept_after([](api::JobStatus& kept) { kept.restarts.disruptions = 0; }) == KeptStatus::WithoutCounts);
  CHECK(kept_after([](api::JobStatus& kept) {
          kept.ready.clear();
          kept.restarts.formed = 0;
        }) == KeptStatus::WithoutCounts);
  CHECK(kept_after([](api::JobStatus& kept) { kept.restarts = {}; }) == KeptStatus::WithoutGeneration);
}
