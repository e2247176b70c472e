#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

TEST_CASE("suspend takes everything away, resume begins anew with edited templates", "[decide]") {
  World world(spec_of(1));
  world.settle();
  world.run_all();
  world.settle();
  const TimePoint started = world.now;
  world.job.spec.run_policy.suspend = true;
  world.now += 10s;
  world.settle();
  world.finish_all_ending();
  world.settle();
  CHECK(world.pods.empty());
  CHECK(world.services.empty());
  CHECK(world.state() == "Suspended");
  CHECK_FALSE(world.has("Running"));
  CHECK(world.job.status.start_time == started);
  CHECK(world.settle() == 0);
  world.job.spec.run_policy.suspend = false;
  world.job.spec.replicas.at(api::ReplicaType::Worker).replicas = 2;
  world.settle();
  CHECK(world.pods.size() == 3);
  CHECK(world.job.status.start_time == world.now);
  CHECK(world.said("PyTorchJobSuspended").size() == 1);
  CHECK(world.said("PyTorchJobResumed").size() == 1);
}

TEST_CASE("a job that is suspended from the start has no start time and no counts", "[decide]") {
  World world(spec_of(1, {{"runPolicy", {{"suspend", true}}}}));
  world.settle();
  CHECK(world.pods.empty());
  CHECK_FALSE(world.job.status.start_time);
  CHECK(world.job.status.replicas.empty());
  CHECK(world.state() == "Suspended");
}
