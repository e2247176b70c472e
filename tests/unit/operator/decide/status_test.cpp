#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;

TEST_CASE("without a master all workers must succeed, of an elastic job any", "[decide]") {
  Json spec = spec_of(2);
  spec["pytorchReplicaSpecs"].erase("Master");
  const bool is_elastic = GENERATE(false, true);
  if (is_elastic) spec["elasticPolicy"] = {{"minReplicas", 1}, {"maxReplicas", 2}};
  World world(spec);
  world.settle();
  world.run_all();
  world.settle();
  CHECK(world.job.status.conditions.back().message == "PyTorchJob ns/job is running.");
  world.end("job-worker-1", 0);
  world.settle();
  CHECK(world.has("Succeeded") == is_elastic);
  world.end("job-worker-0", 0);
  world.settle();
  CHECK(world.job.status.conditions.back().message == "PyTorchJob ns/job successfully completed.");
}

TEST_CASE("the status says how many of the job's pods are ready", "[decide]") {
  World world(spec_of(2));
  world.settle();
  CHECK(world.job.status.ready == "0/3");
  world.run_all();
  world.pods.at("job-worker-1").conditions = {{"Ready", false, "ContainersNotReady", "", world.now}};
  world.settle();
  CHECK(world.job.status.ready == "2/3");
  world.pods.at("job-worker-1").conditions = {{"Ready", true, "", "", world.now}};
  world.settle();
  CHECK(world.job.status.ready == "3/3");
  world.pods.at("job-worker-0").deleted = world.now;
  world.settle();
  CHECK(world.job.status.ready == "0/3");  // of the next generation
  world.job.spec.run_policy.suspend = true;
  world.settle();
  CHECK(world.job.status.ready == "0/3");
}
