#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

TEST_CASE("a job's life: created, running, succeeded, and each look at rest writes nothing", "[decide]") {
  World world(spec_of(2));
  CHECK(world.settle() == 1);
  CHECK(names_of(world.pods) == std::vector<std::string>{"job-master-0", "job-worker-0", "job-worker-1"});
  CHECK(names_of(world.services) == names_of(world.pods));
  CHECK(world.is_token_there);
  CHECK(world.state() == "Created");
  CHECK(world.job.status.start_time == world.now);
  world.run_all();
  CHECK(world.settle() == 1);
  CHECK(world.state() == "Running");
  CHECK(world.job.status.conditions.back().message == "PyTorchJob job is running.");
  world.now += 1h;
  CHECK(world.settle() == 0);
  world.end("job-master-0", 0);
  world.settle();
  CHECK(world.state() == "Succeeded");
  CHECK_FALSE(world.has("Running"));
  CHECK(world.job.status.completion_time == world.now);
  CHECK(world.job.status.replicas.at(api::ReplicaType::Worker).succeeded == 2);  // active ones are taken for it
  CHECK(world.job.status.replicas.at(api::ReplicaType::Worker).active == 0);
  CHECK(world.pods.size() == 3);
}

TEST_CASE("a job that another manager runs, or that is being deleted, is left alone", "[decide]") {
  World world(spec_of(1));
  SECTION("kueue's multi-cluster manager") {
    world.job.spec.run_policy.managed_by = "kueue.x-k8s.io/multikueue";
  }
  SECTION("deleted") {
    world.job.deleted = world.now;
  }
  CHECK(world.look().writes_nothing());
  CHECK(world.look().events.empty());
}
