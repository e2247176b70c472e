#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

TEST_CASE("cleanPodPolicy: None keeps all, Running keeps what has ended, All keeps nothing", "[decide]") {
  const auto [policy, kept] =
      GENERATE(table<std::string, std::vector<std::string>>({{"None", {"job-master-0", "job-worker-0", "job-worker-1"}},
                                                             {"Running", {"job-master-0", "job-worker-1"}},
                                                             {"All", {}}}));
  World world(spec_of(2, {{"runPolicy", {{"cleanPodPolicy", policy}}}}));
  world.settle();
  world.run("job-worker-0");
  world.end("job-worker-1", 0);
  world.end("job-master-0", 0);
  world.settle();
  world.finish_all_ending();
  world.settle();
  CHECK(names_of(world.pods) == kept);
  CHECK(names_of(world.services) == kept);
}

TEST_CASE("a job that ends in the midst of being scaled down leaves no service of the places that are gone",
          "[decide]") {
  World world(spec_of(
      3, {{"elasticPolicy", {{"minReplicas", 1}, {"maxReplicas", 3}}}, {"runPolicy", {{"cleanPodPolicy", "None"}}}}));
  world.settle();
  world.run_all();
  world.settle();
  world.job.spec.replicas.at(api::ReplicaType::Worker).replicas = 1;
  world.end("job-master-0", 0);
  world.settle();
  CHECK(world.has(condition::kSucceeded));
  CHECK(world.services.size() == 2);
}

TEST_CASE("services whose pods are gone already are cleaned up too", "[decide]") {
  World world(spec_of(2, {{"runPolicy", {{"cleanPodPolicy", "Running"}}}}));
  world.settle();
  world.end("job-master-0", 0);
  world.pods.erase("job-worker-0");
  world.settle();
  CHECK(names_of(world.services) == std::vector<std::string>{"job-master-0"});
}

TEST_CASE("a job that failed under an operator that wrote no completion time still has its time to live", "[decide]") {
  World world(spec_of(1, {{"runPolicy", {{"ttlSecondsAfterFinished", 50}}}}));
  world.job.status.conditions.push_back({"Failed", true, "PyTorchJobFailed", "", world.now, world.now});
  world.settle();
  CHECK(world.job.status.completion_time == world.now);
  world.now += 50s;
  CHECK(world.look().deletes.size() == 1);
}
