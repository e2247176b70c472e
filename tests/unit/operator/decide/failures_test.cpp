#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

TEST_CASE("what is done to a pod from outside restarts the gang and spends no budget", "[decide]") {
  World world = running_gang({{"runPolicy", {{"backoffLimit", 0}}}});
  api::Pod& worker = world.pods.at("job-worker-0");
  std::string reason;
  SECTION("deleted by someone") {
    worker.deleted = world.now;
    reason = "PodDeleted";
  }
  SECTION("deleted at once, and nobody saw it go") {
    world.pods.erase("job-worker-0");
    reason = "PodDeleted";
  }
  SECTION("evicted by its kubelet") {
    worker.phase = "Failed";
    worker.reason = reason = "Evicted";
  }
  SECTION("not admitted by its kubelet, as the node has no such device left") {
    worker.phase = "Failed";
    worker.reason = reason = "OutOfnvidia.com/gpu";
  }
  SECTION("preempted by the scheduler") {
    worker.deleted = world.now;
    worker.conditions.push_back({"DisruptionTarget", true, "PreemptionByScheduler", "a more important pod", world.now});
    reason = "PreemptionByScheduler";
  }
  SECTION("its node reports a fault") {
    world.nodes.at("node-1").bad_conditions.push_back({"GPUProblem", true, "Xid", "Xid 48", world.now});
    reason = "NodeFault";
  }
  SECTION("its node is not ready for longer than the grace") {
    world.nodes.at("node-1").is_ready = false;
    world.nodes.at("node-1").ready_since = world.now;
    world.now += 61s;
    reason = "NodeLost";
  }
  SECTION("its node is gone") {
    world.nodes.clear();
    world.now += 61s;
    reason = "NodeLost";
  }
  const Plan plan = world.look();
  REQUIRE(plan.status);
  CHECK(plan.status->restarts.disruptions == 1);
  CHECK(plan.status->restarts.count == 0);
  CHECK(plan.status->restarts.generation == 2);
  CHECK_FALSE(plan.status->restarts.not_before);
  CHECK(plan.status->restarts.last_cause->reason == reason);
  CHECK_FALSE(is_finished(*plan.status));
}

TEST_CASE("a node that is not ready is reported at once and counts as lost after the grace", "[decide]") {
  World world = running_gang();
  world.nodes.at("node-1").is_ready = false;
  world.nodes.at("node-1").ready_since = world.now;
  const Plan plan = world.look();
  CHECK(plan.look_again == world.now + 60s);
  world.carry_out(plan);
  CHECK(world.trouble() == "NodeNotReady");
  CHECK(world.job.status.restarts.generation == 1);
}

TEST_CASE("ranks that end because a peer was lost are a consequence, not the cause", "[decide]") {
  World world = running_gang();
  SECTION("the rank that failed by itself is named") {
    world.end("job-master-0", 138);
    world.end("job-worker-0", 138);
    world.end("job-worker-1", 2);
    world.settle();
    CHECK(world.job.status.restarts.last_cause->pod == "job-worker-1");
    CHECK(world.job.status.restarts.count == 1);
  }
  SECTION("a node that has just gone not ready is behind it") {
    world.add_node("node-2", false);
    world.pods.at("job-worker-1").node = "node-2";
    world.end("job-master-0", 138);
    world.end("job-worker-0", 138);
    world.settle();
    CHECK(world.job.status.restarts.last_cause->reason == "NodeLost");
    CHECK(world.job.status.restarts.disruptions == 1);
  }
  SECTION("the rank that failed by itself is waited for: its kubelet may tell later than another's") {
    world.end("job-worker-0", 138);
    world.pods.at("job-worker-0").containers.front().ended = world.now;
    const Plan plan = world.look();
    CHECK(plan.deletes.empty());
    REQUIRE(plan.look_again);
    CHECK(*plan.look_again == world.now + 10s);
    world.now += 1s;
    world.end("job-master-0", 2, "metrics.dir: metrics: Permission denied");
    world.settle();
    CHECK(world.job.status.restarts.last_cause->pod == "job-master-0");
    CHECK(world.job.status.restarts.count == 1);
  }
  SECTION("it is not waited for longer than reports take, nor where all have ended") {
    const bool have_all_ended = GENERATE(false, true);
    for (const char* name : {"job-master-0", "job-worker-0", "job-worker-1"}) {
      if (!have_all_ended && name == std::string("job-worker-1")) continue;
      world.end(name, 138);
      world.pods.at(name).containers.front().ended = world.now;
    }
    if (!have_all_ended) world.now += 10s;
    world.settle();
    CHECK(world.job.status.restarts.count == 1);
  }
  SECTION("where nothing else is to be seen it spends the budget") {
    world.end("job-worker-0", 138);
    world.settle();
    CHECK(world.job.status.restarts.count == 1);
  }
}

TEST_CASE("pods that another operator made are lost once, and are no part of the gang that follows", "[decide]") {
  World world = running_gang();
  for (auto& [name, pod] : world.pods) pod.generation.reset();
  world.pods.at("job-worker-0").deleted = world.now;
  world.settle();
  CHECK(world.job.status.restarts.disruptions == 1);
  CHECK(world.job.status.restarts.generation == 2);
  world.end("job-worker-1", 143);  // in its grace time
  world.settle();
  CHECK(world.job.status.restarts.disruptions == 1);
  CHECK(world.job.status.restarts.count == 0);
}

namespace {

using State = api::ContainerState;

api::ContainerStatus ended(const char* name, int code, TimePoint at, bool is_init = false,
                           bool is_restartable = false) {
  api::ContainerStatus status{.name = name, .is_init = is_init, .state = State::Terminated};
  status.reason = code == 0 ? "Completed" : "Error";
  status.exit_code = code;
  status.ended = at;
  status.is_restartable = is_restartable;
  return status;
}

}  // namespace

TEST_CASE("the container that failed is named as the cause, and what follows goes by container pytorch", "[decide]") {
  const TimePoint first{10s}, second{20s};
  struct Row {
    const char* situation;
    std::vector<api::ContainerStatus> containers;
    const char* container;
    std::optional<int> exit_code;
    const char* said;  // in the condition
    bool is_repeated;  // under ExitCode
  };
  const std::vector<Row> rows{
      {"pytorch fails alone", {ended("pytorch", 137, first)}, "pytorch", 137, "job-worker-0 exited with code 137",
       true},
      {"a sidecar fails and pytorch is done", {ended("pytorch", 0, first), ended("logs", 3, second)}, "logs", 3,
       "job-worker-0 failed: container logs exited with code 3 (Error)", false},
      {"the code of a sidecar would be repeated, that of pytorch is not",
       {ended("pytorch", 0, first), ended("logs", 137, second)}, "logs", 137,
       "container logs exited with code 137", false},
      {"both fail, the sidecar first", {ended("logs", 3, first), ended("pytorch", 137, second)}, "pytorch", 137,
       "job-worker-0 exited with code 137", true},
      {"two sidecars fail", {ended("a", 4, second), ended("b", 3, first), ended("pytorch", 0, first)}, "b", 3,
       "container b exited with code 3", false},
      {"a restartable init container is ended with its pod",
       {ended("proxy", 143, first, true, true), ended("pytorch", 0, first), ended("logs", 3, second)}, "logs", 3,
       "container logs exited with code 3", false},
      {"a restartable init container is ended with its pod, pytorch's end is not known",
       {ended("proxy", 143, first, true, true), ended("logs", 3, second), {.name = "pytorch"}}, "logs", 3,
       "container logs exited with code 3", false},
      {"an init container fails, pytorch never runs", {ended("init", 200, first, true), {.name = "pytorch"}}, "init",
       200, "container init exited with code 200", true},
      {"nothing that failed is known", {{.name = "pytorch"}}, "", std::nullopt, "job-worker-0 is lost (Error)", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    World world = running_gang(Json::object(), "ExitCode");
    api::Pod& pod = world.pods.at("job-worker-0");
    pod.phase = "Failed";
    pod.containers = row.containers;
    const Plan plan = world.look();
    REQUIRE(plan.status);
    REQUIRE(plan.status->restarts.last_cause);
    CHECK(plan.status->restarts.last_cause->container == row.container);
    CHECK(plan.status->restarts.last_cause->exit_code == row.exit_code);
    CHECK(is_finished(*plan.status) != row.is_repeated);
    if (row.is_repeated) CHECK_THAT(plan.status->conditions.back().message, Catch::Contains(row.said));
  }
}

TEST_CASE("a sidecar that fails is named in the condition, and its exit code moves no job off a node", "[decide]") {
  World world = running_gang({{"runPolicy", {{"backoffLimit", 1}}}});
  api::Pod& pod = world.pods.at("job-worker-0");
  pod.phase = "Failed";
  pod.containers = {ended("pytorch", 0, TimePoint(10s)), ended("logs", 140, TimePoint(20s))};
  const Plan plan = world.look();
  REQUIRE(plan.status);
  CHECK_THAT(plan.status->conditions.back().message,
             Catch::Contains("job-worker-0 failed: container logs exited with code 140 (Error)"));
  CHECK(plan.status->restarts.count == 1);
  CHECK(plan.status->restarts.avoid_nodes.empty());
}
