#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

int64_t generation_of_pod(const World& world, const std::string& name) {
  return world.pods.at(name).generation.value();
}

}  // namespace

TEST_CASE("a failed rank restarts the whole gang as the next generation, and the cause is kept", "[decide]") {
  World world = running_gang();
  CHECK(world.state() == "Running");
  world.end("job-worker-1", 1, "Traceback\nValueError: bad row\n");
  world.settle();
  const api::Restarts& restarts = world.job.status.restarts;
  CHECK(restarts.count == 1);
  CHECK(restarts.disruptions == 0);
  CHECK(restarts.generation == 2);
  REQUIRE(restarts.last_cause);
  CHECK(restarts.last_cause->pod == "job-worker-1");
  CHECK(restarts.last_cause->exit_code == 1);
  CHECK(restarts.last_cause->message == "ValueError: bad row");
  CHECK(world.state() == "Restarting");
  CHECK(world.said("PyTorchJobRestarting").size() == 1);
  // The others run on a node, so they take their grace time; the failed one is replaced at once.
  CHECK(world.pods.at("job-master-0").deleted);
  CHECK(generation_of_pod(world, "job-worker-1") == 2);
  world.finish_all_ending();
  world.settle();
  for (const auto& [name, pod] : world.pods) {
    CHECK(generation_of_pod(world, name) == 2);
    CHECK(pod.restart_policy == "Never");
  }
  world.run_all();
  world.settle();
  CHECK(world.state() == "Running");
  CHECK(world.job.status.restarts.generation == 2);
}

TEST_CASE("failures wait 0, 10, 20, 40 s … 5 min, and anew once training got on", "[decide]") {
  World world = running_gang();
  const auto fail_once = [&] {
    world.run_all();
    world.settle();
    world.end("job-worker-0", 1);
    world.settle();
    world.finish_all_ending();
    const auto& not_before = world.job.status.restarts.not_before;
    const auto wait = not_before ? std::chrono::duration_cast<std::chrono::seconds>(*not_before - world.now) : 0s;
    if (wait > 0s) {
      const Plan plan = world.look();
      CHECK(plan.look_again == not_before);
      const auto is_pod = [](const Create& one) { return one.kind == Kind::Pod; };
      CHECK(std::ranges::none_of(plan.creates, is_pod));
    }
    world.now += wait;
    world.settle();
    return wait;
  };
  for (const auto wait : {0s, 10s, 20s, 40s, 80s, 160s, 300s, 300s}) CHECK(fail_once() == wait);
  SECTION("a newer checkpoint") {
    world.progress = api::Progress{};
    world.progress->checkpoint_step = 50;
    world.progress->updated = world.now;
  }
  SECTION("ten minutes of running") {
    world.run_all();
    world.settle();
    world.now += 10min;
  }
  CHECK(fail_once() == 0s);
  CHECK(fail_once() == 10s);
  CHECK(world.job.status.restarts.count == 10);
}

TEST_CASE("restartPolicy and backoffLimit say whether a failure is repeated", "[decide]") {
  struct Row {
    const char* situation;
    std::string restart;
    int exit_code;
    std::optional<int> limit;
    int restarts_before;
    bool fails;
  };
  const auto row = GENERATE(values<Row>({
      {"OnFailure repeats any code", "OnFailure", 2, {}, 0, false},
      {"Always likewise", "Always", 1, {}, 0, false},
      {"Never fails the job", "Never", 1, {}, 0, true},
      {"ExitCode repeats 128", "ExitCode", 128, {}, 0, false},
      {"ExitCode repeats 137", "ExitCode", 137, {}, 0, false},
      {"ExitCode takes 127 for final", "ExitCode", 127, {}, 0, true},
      {"ExitCode takes 1 for final", "ExitCode", 1, {}, 0, true},
      {"budget of two, one spent", "OnFailure", 1, 2, 1, false},
      {"budget of two, both spent", "OnFailure", 1, 2, 2, true},
      {"no budget at all", "OnFailure", 1, 0, 0, true},
      {"ExitCode restarts spend it too", "ExitCode", 137, 1, 1, true},
  }));
  INFO(row.situation);
  Json changes = Json::object();
  if (row.limit) changes["runPolicy"]["backoffLimit"] = *row.limit;
  World world = running_gang(changes, row.restart);
  world.job.status.restarts.count = row.restarts_before;
  world.end("job-worker-0", row.exit_code);
  world.settle();
  CHECK(world.has("Failed") == row.fails);
  CHECK(world.job.status.restarts.count == row.restarts_before + (row.fails ? 0 : 1));
  CHECK(world.job.status.completion_time.has_value() == row.fails);
  CHECK(world.job.status.restarts.last_cause->exit_code == row.exit_code);
}

TEST_CASE("backoffLimit counts failures since there last was a newer checkpoint", "[decide]") {
  World world = running_gang({{"runPolicy", {{"backoffLimit", 2}}}});
  int64_t saved = 0;
  const auto fail_once = [&](bool after_a_checkpoint) {
    world.run_all();
    world.settle();
    if (after_a_checkpoint) {
      world.progress = api::Progress{};
      world.progress->checkpoint_step = saved += 50;
      world.progress->updated = world.now;
    }
    world.end("job-worker-0", 1);
    world.settle();
    world.finish_all_ending();
    world.now += 10min;
    world.settle();
    return world.has("Failed");
  };
  for (int week = 0; week < 5; ++week) CHECK_FALSE(fail_once(true));
  CHECK_FALSE(fail_once(false));  // the second since the last one
  CHECK(world.job.status.restarts.count == 6);
  CHECK(fail_once(false));  // though it ran for ten minutes each time, as a job does that tells nothing of checkpoints
  CHECK(world.job.status.restarts.count == 6);
}

TEST_CASE("what is only Pending is never punished", "[decide]") {
  World world(spec_of(2, {{"runPolicy", {{"backoffLimit", 0}}}}));
  world.settle();
  for (auto& [name, pod] : world.pods)
    pod.conditions.push_back({"PodScheduled", false, "Unschedulable", "0/3 nodes are available", world.now});
  for (int hour = 0; hour < 100; ++hour) {
    world.now += 1h;
    world.settle();
  }
  CHECK(world.state() == "Created");
  CHECK(world.trouble() == "PodUnschedulable");
  CHECK(world.job.status.restarts.generation == 1);
  CHECK(world.said("PodUnschedulable").size() == 1);
}

TEST_CASE("a device's fault keeps the gang off the node", "[decide]") {
  World world = running_gang();
  world.end("job-worker-1", 140);
  world.settle();
  world.finish_all_ending();
  CHECK(world.job.status.restarts.avoid_nodes == std::vector<std::string>{"node-1"});
  world.add_node("node-2");
  world.nodes.at("node-2").bad_conditions.push_back({"GPUProblem", true, "Xid", "Xid 48", world.now});
  world.pods.clear();
  // The API takes one value for a field of a node, and all rules of a term hold.
  const Json rules = Json::array({{{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"node-1"}}},
                                  {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"node-2"}}}});
  for (const Create& one : world.look().creates) {
    if (one.kind != Kind::Pod) continue;
    CHECK(
        one.object.at("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/"
                      "matchFields"_json_pointer) == rules);
  }
}

TEST_CASE("a gang whose size is changed starts anew, as its ranks know another WORLD_SIZE", "[decide]") {
  World world = running_gang();
  world.job.spec.replicas.at(api::ReplicaType::Worker).replicas = 3;
  world.settle();
  CHECK(world.job.status.restarts.generation == 2);
  CHECK(world.job.status.restarts.count == 0);
  CHECK(world.job.status.restarts.disruptions == 0);
  world.finish_all_ending();
  world.settle();
  CHECK(world.pods.size() == 4);
  CHECK(world.services.size() == 4);
}

TEST_CASE("an elastic job goes on while it is scaled, and what is lost of its new size restarts it", "[decide]") {
  World world(spec_of(2, {{"elasticPolicy", {{"minReplicas", 1}, {"maxReplicas", 8}}}}));
  world.settle();
  world.run_all();
  world.settle();
  int& workers = world.job.spec.replicas.at(api::ReplicaType::Worker).replicas;
  workers = 4;
  world.settle();
  CHECK(world.pods.size() == 5);
  workers = 3;
  world.settle();
  world.finish_all_ending();
  world.settle();
  CHECK(world.pods.size() == 4);
  world.run_all();
  world.settle();
  CHECK(world.job.status.restarts.generation == 1);
  CHECK(world.job.status.restarts.formed == 4);
  world.finish("job-worker-2");
  world.settle();
  CHECK(world.job.status.restarts.generation == 2);
  CHECK(world.job.status.restarts.disruptions == 1);
}

TEST_CASE("an elastic job whose annotation asks for the gang starts anew at another size, up and down", "[decide]") {
  World world({{"elasticPolicy", {{"minReplicas", 1}, {"maxReplicas", 4}}},
               {"nprocPerNode", "2"},
               {"pytorchReplicaSpecs", {{"Worker", spec_of(2)["pytorchReplicaSpecs"]["Worker"]}}}},
              {{"trainyard.dev/restart-scope", "gang"}});
  world.settle();
  world.run_all();
  world.settle();
  int generation = 1;
  for (const int workers : {4, 1}) {
    world.job.spec.replicas.at(api::ReplicaType::Worker).replicas = workers;
    world.settle();
    world.finish_all_ending();
    world.settle();
    world.run_all();
    world.settle();
    CHECK(world.job.status.restarts.generation == ++generation);
    REQUIRE(world.pods.size() == static_cast<size_t>(workers));
    for (const auto& [name, pod] : world.pods) {
      CHECK(pod.world_size == fmt::format("{}", workers * 2));
      CHECK(pod.nnodes == "1:4");
    }
  }
  CHECK(world.job.status.restarts.count == 0);
  CHECK(world.job.status.restarts.disruptions == 0);
}

TEST_CASE("wherever the operator dies within a plan, the next one comes to the same end", "[decide]") {
  for (size_t died_after = 0; died_after < 12; ++died_after) {
    World world = running_gang();
    world.end("job-worker-1", 1);
    world.carry_out(world.look(), died_after);
    world.settle();
    world.finish_all_ending();
    world.carry_out(world.look(), died_after / 2);
    world.settle();
    world.finish_all_ending();
    world.settle();
    INFO("died after write " << died_after);
    CHECK(world.pods.size() == 3);
    CHECK(world.services.size() == 3);
    CHECK(world.job.status.restarts.count == 1);
    CHECK(world.job.status.restarts.generation == 2);
    CHECK(world.said("PyTorchJobRestarting").size() == 1);
  }
}

TEST_CASE("random histories settle: one pod a place, of the present generation, and then nothing more", "[decide]") {
  std::mt19937 random(GENERATE(range(1, 60)));
  World world = running_gang();
  for (int step = 0; step < 40; ++step) {
    if (world.pods.empty()) break;
    auto pod = std::next(world.pods.begin(), static_cast<long>(random() % world.pods.size()));
    switch (random() % 7) {
      case 0:
        if (pod->second.phase == "Running") world.end(pod->first, static_cast<int>(random() % 3) + 1);
        break;
      case 1:
        pod->second.deleted = world.now;
        break;
      case 2:
        world.pods.erase(pod);
        break;
      case 3:
        world.run_all();
        break;
      case 4:
        world.finish_all_ending();
        break;
      case 5:
        world.now += std::chrono::seconds(random() % 400);
        break;
      default:
        world.carry_out(world.look(), random() % 8);
    }
  }
  world.now += 10min;
  for (int i = 0; i < 4; ++i) {
    world.settle();
    world.finish_all_ending();
  }
  world.run_all();
  world.settle();
  CHECK(world.state() == "Running");
  REQUIRE(world.pods.size() == 3);
  for (const auto& [name, pod] : world.pods) CHECK(pod.generation == world.job.status.restarts.generation);
  CHECK(world.look().writes_nothing());
}

TEST_CASE("the pod that failed stays, for its logs, until the back-off is over, and the others go at once", "[decide]") {
  World world = running_gang();
  const auto fail_once = [&] {
    world.run_all();
    world.settle();
    world.end("job-worker-1", 1, "ValueError: bad row");
    world.settle();
    world.finish_all_ending();
  };
  fail_once();  // the first restart waits for nothing
  world.settle();
  fail_once();
  REQUIRE(world.pods.size() == 1);
  CHECK(world.pods.at("job-worker-1").phase == "Failed");
  CHECK(world.look().writes_nothing());
  CHECK(world.look().look_again == world.now + 10s);
  world.now += 10s;
  world.settle();
  REQUIRE(world.pods.size() == 3);
  for (const auto& [name, pod] : world.pods) CHECK(pod.generation == 3);
}

TEST_CASE("the status keeps the last five causes, the newest last", "[decide]") {
  World world = running_gang();
  for (int failure = 1; failure <= 7; ++failure) {
    world.run_all();
    world.settle();
    world.end("job-worker-1", failure);
    world.settle();
    world.finish_all_ending();
    world.now += 10min;
    world.settle();
  }
  std::vector<int> codes;
  for (const api::RestartCause& cause : world.job.status.restarts.causes) codes.push_back(cause.exit_code.value());
  CHECK(codes == std::vector<int>{3, 4, 5, 6, 7});
  CHECK(world.job.status.restarts.last_cause->exit_code == 7);
}

TEST_CASE("a worker that is done and whose pod is removed is neither lost nor made anew", "[decide]") {
  Json spec = spec_of(3);
  spec["pytorchReplicaSpecs"].erase("Master");
  World world(spec);
  world.settle();
  world.run_all();
  world.settle();
  world.end("job-worker-1", 0);
  world.settle();
  world.pods.erase("job-worker-1");
  world.job.status = api::parse_status({{"status", api::to_json(world.job.status)}});  // by another operator
  world.settle();
  CHECK(world.job.status.restarts.generation == 1);
  CHECK(world.pods.size() == 2);
  CHECK(world.job.status.replicas.at(api::ReplicaType::Worker).succeeded == 1);
  SECTION("the job succeeds once the others have") {
    world.end("job-worker-0", 0);
    world.end("job-worker-2", 0);
    world.settle();
    CHECK(world.has("Succeeded"));
  }
  SECTION("it takes part in the next generation") {
    world.end("job-worker-0", 1);
    world.settle();
    world.finish_all_ending();
    world.settle();
    CHECK(world.pods.size() == 3);
    CHECK(world.job.status.restarts.finished.empty());
  }
}
