#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> names_of(const auto& objects) {
  std::vector<std::string> names;
  for (const auto& [name, object] : objects) names.push_back(name);
  return names;
}

}  // namespace

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

TEST_CASE("a job that failed under an operator that wrote no completion time still has its time to live", "[decide]") {
  World world(spec_of(1, {{"runPolicy", {{"ttlSecondsAfterFinished", 50}}}}));
  world.job.status.conditions.push_back({"Failed", true, "PyTorchJobFailed", "", world.now, world.now});
  world.settle();
  CHECK(world.job.status.completion_time == world.now);
  world.now += 50s;
  CHECK(world.look().deletes.size() == 1);
}

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

TEST_CASE("progress reaches the status at most every ten seconds, a new checkpoint at once", "[decide]") {
  World world(spec_of(1));
  world.settle();
  world.run_all();
  world.settle();
  world.progress = api::Progress{};
  world.progress->updated = world.now;
  int writes = 0;
  for (int second = 1; second <= 60; ++second) {
    world.now += 1s;
    world.progress->step = second;
    world.progress->updated = world.now;
    writes += world.settle();
  }
  CHECK(writes >= 5);
  CHECK(writes <= 7);
  world.now += 1s;
  world.progress->updated = world.now;
  world.progress->checkpoint_step = 60;
  CHECK(world.settle() == 1);
}

TEST_CASE("progress tells how long the rest takes at the speed since the last look, and the loss as logs do",
          "[decide]") {
  World world(spec_of(1));
  world.settle();
  world.run_all();
  world.settle();
  const auto report = [&](int64_t step, std::chrono::seconds later) {
    world.now += later;
    world.progress = api::Progress{.step = step, .total_steps = 100, .loss = 2.212388589654782, .updated = world.now};
    world.settle();
    return world.job.status.progress->eta;
  };
  CHECK(report(10, 1s).empty());  // one report tells no speed
  CHECK(world.job.status.progress->loss == 2.21239);
  CHECK(report(20, 20s) == "2m40s");
  CHECK(report(15, 20s).empty());  // the gang went back to a checkpoint
  CHECK(report(55, 40s) == "45s");
  CHECK(report(100, 45s).empty());
}

TEST_CASE("progress that stops is written when its turn has come, and looked at no more", "[decide]") {
  World world(spec_of(1));
  world.settle();
  world.run_all();
  world.settle();
  const auto report = [&](int64_t step) {
    world.progress = api::Progress{.step = step, .total_steps = 100, .updated = world.now};
  };
  report(1);
  world.settle();
  world.now += 4s;
  report(2);
  const Plan early = world.look();
  CHECK(early.writes_nothing());
  CHECK(early.look_again == world.now + 6s);
  world.now += 6s;
  world.settle();
  CHECK(world.job.status.progress->step == 2);
  CHECK_FALSE(world.look().look_again);
}

TEST_CASE("a deadline that means never is as long as the calendar goes", "[decide]") {
  World world(spec_of(1, {{"runPolicy", {{"activeDeadlineSeconds", 9'999'999'999'999}}}}));
  world.settle();
  world.run_all();
  world.settle();
  CHECK(world.state() == "Running");
}

TEST_CASE("a job that is made defective while it runs can be suspended", "[decide]") {
  World world(spec_of(1));
  world.settle();
  world.run_all();
  world.settle();
  for (auto& [type, spec] : world.job.spec.replicas) spec.replicas = 0;
  world.settle();
  CHECK(world.trouble() == "InvalidSpec");
  world.job.spec.run_policy.suspend = true;
  world.settle();
  world.finish_all_ending();
  CHECK(world.pods.empty());
  CHECK(world.state() == "Suspended");
}

TEST_CASE("autoscaler: a quantity that the API wrote in its own way is what was asked for", "[decide]") {
  const auto metric = [](const Json& value) {
    return Json::array(
        {{{"type", "Resource"},
          {"resource", {{"name", "memory"}, {"target", {{"type", "AverageValue"}, {"averageValue", value}}}}}}});
  };
  World world(spec_of(2, {{"elasticPolicy", {{"minReplicas", 1}, {"maxReplicas", 4}, {"metrics", metric("1024Mi")}}}}));
  const Plan first = world.look();
  const auto made = std::ranges::find(first.creates, Kind::Autoscaler, &Create::kind);
  REQUIRE(made != first.creates.end());
  api::Autoscaler there = api::parse_autoscaler(made->object);
  const auto patches = [&](const Json& value) {
    there.spec["metrics"] = metric(value);
    world.autoscaler = there;
    return world.look().patches.size();
  };
  CHECK(patches("1Gi") == 0);
  CHECK(patches("2Gi") == 1);
}

TEST_CASE("gang scheduling: a Volcano group that waits again keeps no failure from being seen", "[decide]") {
  World world(spec_of(1));
  world.settings.gang_scheduler = GangScheduler::Volcano;
  world.pod_group = api::parse_pod_group(world.look().prepare.front().object);
  world.pod_group->phase = "Running";
  world.settle();
  world.run_all();
  world.settle();
  world.pod_group->phase = "Pending";
  world.end("job-worker-0", 1);
  world.carry_out(world.look());
  CHECK(world.job.status.restarts.count == 1);
  world.finish_all_ending();
  world.now += 1h;
  const Plan waits = world.look();
  CHECK(std::ranges::find(waits.creates, Kind::Pod, &Create::kind) == waits.creates.end());
}

TEST_CASE("gang scheduling: pods of a Volcano group wait until it is let in", "[decide]") {
  World world(spec_of(1));
  world.settings.gang_scheduler = GangScheduler::Volcano;
  world.settings.gang_scheduler_name = "volcano";
  const Plan first = world.look();
  REQUIRE(first.prepare.size() == 1);
  CHECK(first.prepare.front().kind == Kind::PodGroup);
  CHECK(first.prepare.front().object.at("spec").at("minMember") == 2);
  CHECK(first.prepare.front().object.at("spec").at("queue") == "default");
  CHECK(first.creates.empty());
  CHECK_FALSE(first.status->start_time);
}
