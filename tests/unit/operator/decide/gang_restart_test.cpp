#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

/// A gang of a master and two workers, all running on node-1.
World running_gang(const Json& changes = Json::object(), const std::string& restart = "OnFailure") {
  World world(spec_of(2, changes, restart));
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

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

TEST_CASE("a pod that is deleted before the gang has formed is made anew, and nothing is restarted", "[decide]") {
  World world(spec_of(2));
  world.settle();
  world.pods.erase("job-worker-0");
  world.settle();
  CHECK(world.pods.size() == 3);
  CHECK(world.job.status.restarts.generation == 1);
  CHECK(world.job.status.restarts.disruptions == 0);
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

TEST_CASE("a pod of a lost node that a finalizer holds is deleted by force once", "[decide]") {
  World world = running_gang();
  world.nodes.clear();
  world.now += 61s;
  world.carry_out(world.look());  // counted
  api::Pod& held = world.pods.at("job-worker-0");
  held.deleted = world.now, held.grace_seconds = 0;
  for (const Delete& one : world.look().deletes) CHECK(one.name != "job-worker-0");
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

TEST_CASE("a stalled job is restarted, with the silent ranks named", "[decide]") {
  World world(spec_of(1), {{"trainyard.dev/progress-deadline-seconds", "120"}});
  world.settle();
  world.run_all();
  world.settle();
  world.progress = api::Progress{};
  world.progress->step = 5;
  world.progress->updated = world.progress->advanced = world.now;
  world.progress->silent_ranks = {1};
  world.now += 119s;
  CHECK(world.look().look_again <= world.now + 1s);
  world.settle();
  CHECK(world.job.status.restarts.generation == 1);
  world.now += 1s;
  world.settle();
  CHECK(world.job.status.restarts.generation == 2);
  CHECK(world.job.status.restarts.last_cause->reason == "Stalled");
  CHECK_THAT(world.job.status.restarts.last_cause->message, Catch::Contains("silent: rank 1"));
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
