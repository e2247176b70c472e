#include "decide/rules/limits.h"

#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

TEST_CASE("deadlines and times to live act on time", "[decide]") {
  World world(spec_of(1, {{"runPolicy", {{"activeDeadlineSeconds", 100}, {"ttlSecondsAfterFinished", 50}}}}));
  world.settle();
  world.run_all();
  world.settle();
  CHECK(world.look().look_again == world.now + 100s);
  world.now += 99s;
  world.settle();
  CHECK_FALSE(world.has("Failed"));
  world.now += 1s;
  world.settle();
  CHECK(world.has("Failed"));
  CHECK(world.said("PyTorchJobFailed") ==
        std::vector<std::string>{"Job job has failed because it was active longer than specified deadline"});
  CHECK(ended_by_active_deadline(world.job, world.job.status));
  CHECK(world.look().look_again == world.now + 50s);
  world.now += 49s;
  world.settle();
  CHECK_FALSE(world.is_job_deleted);
  world.now += 1s;
  const Plan plan = world.look();
  REQUIRE(plan.deletes.size() == 1);
  CHECK(plan.deletes.front().kind == Kind::Job);
  CHECK(plan.deletes.front().uid == world.job.uid);
  CHECK(plan.deletes.front().event_message == "Deleted job: job");
}

TEST_CASE("a deadline that means never is as long as the calendar goes", "[decide]") {
  World world(spec_of(1, {{"runPolicy", {{"activeDeadlineSeconds", 9'999'999'999'999}}}}));
  world.settle();
  world.run_all();
  world.settle();
  CHECK(world.state() == "Running");
}
