#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

World running(const Json& policy) {
  World world(spec_of(1, {{"runPolicy", policy}}));
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

}  // namespace

TEST_CASE("a calendar that is set back: the deadline counts from when that is seen", "[decide]") {
  World world = running({{"activeDeadlineSeconds", 60}});
  world.now -= 1h;
  world.settle();
  CHECK(world.job.status.start_time == world.now);
  world.now += 61s;
  world.settle();
  CHECK(world.state() == "Failed");
}

TEST_CASE("a calendar that is set back: the time to live counts from when that is seen", "[decide]") {
  World world = running({{"ttlSecondsAfterFinished", 60}});
  world.end("job-master-0", 0);
  world.settle();
  world.now -= 1h;
  world.settle();
  CHECK_FALSE(world.is_job_deleted);
  world.now += 61s;
  world.carry_out(world.look());
  CHECK(world.is_job_deleted);
}

TEST_CASE("a calendar that is set back: no restart waits longer than its back-off", "[decide]") {
  World world = running(Json::object());
  for (int failures = 1; failures <= 2; ++failures) {
    world.end("job-worker-0", 1);
    world.settle();
    world.finish_all_ending();
    world.run_all();
    world.settle();
    if (failures == 1) {
      world.settle();
      world.run_all();
      world.settle();
    }
  }
  CHECK(world.job.status.restarts.not_before == world.now + 10s);
  world.now -= 1min;
  world.settle();
  CHECK_FALSE(world.job.status.restarts.not_before);
  CHECK(world.pods.size() == 2);
}

TEST_CASE("calendars that differ by seconds, as those of two machines do, are no reason to write", "[decide]") {
  World world = running({{"activeDeadlineSeconds", 60}});
  world.now -= 4s;
  CHECK(world.settle() == 0);
}
