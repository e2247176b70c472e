#include "decide/rules/pod_group.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

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

TEST_CASE("gang scheduling: only Volcano holds pods back, until its group is let in", "[decide]") {
  const World world(spec_of(1));
  const auto let_in = [&world](GangScheduler scheduler, const std::optional<std::string>& phase) {
    Settings settings;
    settings.gang_scheduler = scheduler;
    api::PodGroup group;
    group.phase = phase.value_or("");
    Observed seen{world.job, {}, {}};
    if (phase) seen.pod_group = &group;
    return is_let_in(seen, settings);
  };
  CHECK_FALSE(let_in(GangScheduler::Volcano, std::nullopt));
  CHECK_FALSE(let_in(GangScheduler::Volcano, ""));
  CHECK_FALSE(let_in(GangScheduler::Volcano, "Pending"));
  CHECK(let_in(GangScheduler::Volcano, "Inqueue"));
  CHECK(let_in(GangScheduler::Volcano, "Running"));
  for (const GangScheduler scheduler : {GangScheduler::None, GangScheduler::SchedulerPlugins}) {
    CHECK(let_in(scheduler, std::nullopt));
    CHECK(let_in(scheduler, "Pending"));
  }
}

TEST_CASE("gang scheduling: a group keeps its queue and what others set, and follows the job's size", "[decide]") {
  World world(spec_of(1));
  world.settings.gang_scheduler = GangScheduler::Volcano;
  world.pod_group = api::parse_pod_group(world.look().prepare.front().object);
  CHECK(world.look().patches.empty());
  world.pod_group->spec["queue"] = "night";
  world.pod_group->spec["minTaskMember"] = {{"worker", 1}};
  CHECK(world.look().patches.empty());
  world.job.spec.replicas.at(api::ReplicaType::Worker).replicas = 3;
  const Plan plan = world.look();
  REQUIRE(plan.patches.size() == 1);
  CHECK(plan.patches.front().merge.at("spec").at("minMember") == 4);
  CHECK_FALSE(plan.patches.front().merge.at("spec").contains("queue"));
  CHECK_FALSE(plan.patches.front().merge.at("spec").contains("minTaskMember"));
}

TEST_CASE("gang scheduling: a group that goes is said once, and is not deleted twice", "[decide]") {
  const World world(spec_of(1));
  api::PodGroup group;
  group.name = "job", group.uid = "uid-group";
  Observed seen{world.job, {}, {}};
  CHECK(pod_group_removal(seen).writes_nothing());
  seen.pod_group = &group;
  const Plan plan = pod_group_removal(seen);
  REQUIRE(plan.deletes.size() == 1);
  CHECK(plan.deletes.front().uid == "uid-group");
  REQUIRE(plan.events.size() == 1);
  CHECK_FALSE(plan.events.front().once.empty());
  group.deleted = world.now;
  CHECK(pod_group_removal(seen).writes_nothing());
}
