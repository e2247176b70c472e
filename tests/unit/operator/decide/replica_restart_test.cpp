#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

World running_replicas(const std::string& restart, const Json& changes = Json::object()) {
  World world(spec_of(2, changes, restart));
  world.settings.restart_scope = RestartScope::Replica;
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

}  // namespace

TEST_CASE("replica scope: only the failed pod is made anew, with the reference's words", "[decide]") {
  World world = running_replicas("OnFailure");
  world.end("job-worker-1", 1);
  world.carry_out(world.look());
  CHECK(world.said("PyTorchJobRestarting") ==
        std::vector<std::string>{"job job is restarting because Worker replica(s) failed.",
                                 "PyTorchJob job is restarting because 1 Worker replica(s) failed."});
  CHECK(world.state() == "Restarting");
  world.settle();
  CHECK(world.pods.at("job-worker-1").phase == "Pending");
  CHECK(world.pods.at("job-worker-0").phase == "Running");
  CHECK(world.state() == "Running");
  CHECK(world.job.status.restarts.count == 1);
  CHECK(world.job.status.restarts.generation == 1);
  CHECK(world.pods.at("job-worker-0").restart_policy == "OnFailure");
}

TEST_CASE("replica scope: a failure is counted once, wherever the operator dies", "[decide]") {
  World world = running_replicas("OnFailure");
  world.end("job-worker-1", 1);
  world.carry_out(world.look(), 0);  // the status is written, the pod not yet deleted
  world.settle();
  CHECK(world.job.status.restarts.count == 1);
  CHECK(world.pods.at("job-worker-1").phase == "Pending");
}

TEST_CASE("replica scope: failures spend backoffLimit, and so do restarts by the kubelet", "[decide]") {
  SECTION("failed pods") {
    World world = running_replicas("ExitCode", {{"runPolicy", {{"backoffLimit", 1}}}});
    world.end("job-worker-0", 137);
    world.settle();
    CHECK_FALSE(world.has("Failed"));
    world.now += 1s;
    world.run_all();
    world.end("job-worker-1", 137);
    world.settle();
    CHECK(world.has("Failed"));
  }
  SECTION("a restartable init container never") {
    World world = running_replicas("OnFailure", {{"runPolicy", {{"backoffLimit", 0}}}});
    api::ContainerStatus proxy{.name = "proxy", .is_init = true, .state = api::ContainerState::Running, .restarts = 9};
    proxy.is_restartable = true;
    world.pods.at("job-worker-0").containers.insert(world.pods.at("job-worker-0").containers.begin(), proxy);
    world.settle();
    CHECK_FALSE(world.has("Failed"));
  }
  SECTION("containers restarted in place, added up") {
    World world = running_replicas("OnFailure", {{"runPolicy", {{"backoffLimit", 3}}}});
    world.pods.at("job-worker-0").containers.front().restarts = 2;
    world.settle();
    CHECK_FALSE(world.has("Failed"));
    world.pods.at("job-master-0").containers.front().restarts = 1;
    world.settle();
    CHECK(world.said("PyTorchJobFailed") ==
          std::vector<std::string>{"Job job has failed because it has reached the specified backoff limit"});
  }
}

TEST_CASE("replica scope: a final exit code fails the job in the reference's words, without a restart", "[decide]") {
  World world = running_replicas("ExitCode", {{"runPolicy", {{"cleanPodPolicy", "Running"}}}});
  world.end("job-worker-1", 127);
  world.settle();
  CHECK(world.said("PyTorchJobFailed") ==
        std::vector<std::string>{"job \"job\" is failing because \"Worker\" replica(s) failed."});
  CHECK(world.said("PyTorchJobRestarting").empty());
  CHECK(world.job.status.completion_time);
  CHECK(world.job.status.replicas.at(api::ReplicaType::Master).active == 1);  // the last counts stay
  CHECK(world.job.status.replicas.at(api::ReplicaType::Worker).failed == 1);
}

TEST_CASE("replica scope: under Never a failed pod fails the job", "[decide]") {
  World world = running_replicas("Never");
  world.end("job-worker-1", 3);
  world.settle();
  CHECK(world.said("PyTorchJobFailed") ==
        std::vector<std::string>{"PyTorchJob job is failed because 1 Worker replica(s) failed."});
  CHECK(world.job.status.restarts.count == 0);
  CHECK(world.job.status.restarts.last_cause->exit_code == 3);
}

TEST_CASE("replica scope: a running pod that is going counts as failed, and is said once", "[decide]") {
  World world = running_replicas("OnFailure");
  world.pods.at("job-master-0").deleted = world.now;
  world.settle();
  world.settle();
  CHECK(world.said("PyTorchJobRestarting") ==
        std::vector<std::string>{"PyTorchJob job is restarting because 1 Master replica(s) failed."});
  CHECK(world.state() == "Restarting");
  world.finish_all_ending();
  world.settle();
  world.run_all();
  world.settle();
  CHECK(world.state() == "Running");
}

TEST_CASE("replica scope: a dead node's pods are made anew", "[decide]") {
  World world = running_replicas("OnFailure");
  world.nodes.clear();
  world.now += 61s;
  world.settle();
  CHECK(world.pods.size() == 3);
  for (const auto& [name, pod] : world.pods) CHECK(pod.phase == "Pending");
  CHECK(world.job.status.restarts.disruptions == 3);
}

TEST_CASE("replica scope: a pod on a lost node is ended by force after the grace, and counted once", "[decide]") {
  World world = running_replicas(GENERATE("OnFailure", "Always", "ExitCode"));
  world.add_node("node-2", false);
  world.pods.at("job-worker-1").node = "node-2";
  world.now += 59s;
  world.settle();
  CHECK_FALSE(world.pods.at("job-worker-1").deleted);
  world.now += 1s;
  const bool dies_before_it_deletes = GENERATE(false, true);
  world.carry_out(world.look(), dies_before_it_deletes ? 0 : 100);
  if (dies_before_it_deletes) world.carry_out(world.look());
  CHECK(world.pods.at("job-worker-1").deleted);
  const Plan plan = world.look();
  REQUIRE(plan.deletes.size() == 1);
  CHECK(plan.deletes.front().name == "job-worker-1");
  CHECK(plan.deletes.front().grace_seconds == 0);
  world.settle();
  CHECK(world.pods.at("job-worker-1").phase == "Pending");
  CHECK(world.pods.at("job-worker-0").phase == "Running");
  CHECK(world.job.status.restarts.disruptions == 1);
  CHECK(world.job.status.restarts.count == 0);
  CHECK(world.job.status.restarts.last_cause->reason == "NodeLost");
  CHECK(world.said("PyTorchJobRestarting") ==
        std::vector<std::string>{
            "PyTorchJob job is restarting because pod job-worker-1 is lost (NodeLost): node node-2 is not ready."});
}

TEST_CASE("replica scope: a lost node's pod that ends when the node comes back changes no cause", "[decide]") {
  World world = running_replicas("OnFailure");
  world.add_node("node-2", false);
  world.pods.at("job-worker-1").node = "node-2";
  world.now += 60s;
  world.carry_out(world.look());
  world.nodes.at("node-2").is_ready = true;
  world.end("job-worker-1", 137);  // its grace is over
  world.settle();
  CHECK(world.job.status.restarts.last_cause->reason == "NodeLost");
  CHECK(world.job.status.restarts.count == 0);
}

TEST_CASE("replica scope: under Never a lost node fails the job, and what its pod says later changes nothing",
          "[decide]") {
  World world = running_replicas("Never");
  world.add_node("node-2", false);
  world.pods.at("job-worker-1").node = "node-2";
  if (GENERATE(false, true)) world.pods.at("job-worker-1").deleted = world.now;  // by its node's taint
  world.now += 60s;
  world.settle();
  CHECK(world.has("Failed"));
  CHECK(world.said("PyTorchJobFailed") ==
        std::vector<std::string>{"PyTorchJob job is failed because 1 Worker replica(s) failed."});
  CHECK(world.job.status.restarts.last_cause->reason == "NodeLost");
  world.nodes.at("node-2").is_ready = true;
  world.end("job-worker-1", 137);
  world.settle();
  CHECK(world.job.status.restarts.last_cause->reason == "NodeLost");
  CHECK(world.job.status.restarts.causes.size() == 1);
}

TEST_CASE("replica scope: a failed pod stays, for its logs, until the back-off is over", "[decide]") {
  World world = running_replicas("ExitCode");
  const auto fail_once = [&] {
    world.run_all();
    world.end("job-worker-0", 137);
    world.settle();
  };
  fail_once();  // the first restart waits for nothing
  CHECK(world.pods.at("job-worker-0").phase == "Pending");
  fail_once();
  CHECK(world.pods.at("job-worker-0").phase == "Failed");
  CHECK(world.look().look_again <= world.now + 100ms);
  world.now += 100ms;
  world.settle();
  CHECK(world.pods.at("job-worker-0").phase == "Pending");
  CHECK(world.job.status.restarts.count == 2);
}
