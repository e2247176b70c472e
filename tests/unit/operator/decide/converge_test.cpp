#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

TEST_CASE("a large gang is made in parts, none of which is taken for a loss", "[decide]") {
  World world(spec_of(24));
  world.settings.most_creates = 7;
  CHECK(world.look().creates.size() == 7);
  CHECK(world.look().look_again == world.now);
  CHECK(world.settle() >= 8);
  CHECK(world.pods.size() == 25);
  CHECK(world.services.size() == 25);
  CHECK(world.job.status.restarts.generation == 1);
}

TEST_CASE("a pod that is deleted before the gang has formed is made anew, and nothing is restarted", "[decide]") {
  World world(spec_of(2));
  world.settle();
  world.pods.erase("job-worker-0");
  world.settle();
  CHECK(world.pods.size() == 3);
  CHECK(world.job.status.restarts.generation == 1);
  CHECK(world.job.status.restarts.disruptions == 0);
}

TEST_CASE("pods that hang on a lost node are deleted without grace once the generation fences them off", "[decide]") {
  World world = running_gang();
  world.nodes.clear();
  world.now += 61s;
  world.carry_out(world.look());  // the decision, and a graceful end
  CHECK(world.pods.at("job-worker-0").deleted);
  const Plan plan = world.look();
  REQUIRE(plan.deletes.size() == 3);
  for (const Delete& one : plan.deletes) CHECK(one.grace_seconds == 0);
  world.settle();
  CHECK(world.pods.size() == 3);
}

TEST_CASE("a pod of a lost node that a finalizer holds is deleted by force once", "[decide]") {
  World world = running_gang();
  world.nodes.clear();
  world.now += 61s;
  world.carry_out(world.look());  // counted
  api::Pod& held = world.pods.at("job-worker-0");
  held.deleted = world.now, held.grace_seconds = 0;
  for (const Delete& one : world.look().deletes) CHECK(one.name != "job-worker-0");
}

TEST_CASE("a pod whose deletion was cut off between its two steps is deleted again", "[decide]") {
  World world(spec_of(1));
  world.settle();
  api::Pod& pod = world.pods.at("job-worker-0");
  const std::string uid = pod.uid;
  pod.deleted = world.now;
  pod.is_half_deleted = true;
  world.job.status.restarts.generation = 2;  // as when that generation's pods were being removed
  world.settle();
  CHECK(world.pods.at("job-worker-0").uid == uid);
  CHECK(world.look().look_again == world.now + 2s);
  world.now += 2s;
  world.settle();
  CHECK(world.pods.at("job-worker-0").uid != uid);
  CHECK_FALSE(world.pods.at("job-worker-0").deleted);
}
