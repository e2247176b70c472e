#include <catch2/catch.hpp>

#include "decide/objects/names.h"
#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

TEST_CASE("trouble is recognised, said with its next step, and taken back when it is over", "[decide]") {
  struct Row {
    const char* situation;
    std::function<void(World&)> happens;
    std::string reason, says;
  };
  const auto waiting = [](const char* reason, const char* message) {
    return [=](World& world) {
      world.pods.at("job-worker-0").containers = {{"pytorch", false, api::ContainerState::Waiting, reason, message}};
      world.now += 11s;
    };
  };
  const auto row = GENERATE_COPY(values<Row>({
      {"an image that cannot be pulled", waiting("ImagePullBackOff", "Back-off pulling image"), "ImagePullFailed",
       "check its name, tag"},
      {"a secret that is missing", waiting("CreateContainerConfigError", "secret \"x\" not found"),
       "ContainerNotStarting", "kubectl describe pod job-worker-0"},
      {"no node that takes it",
       [](World& world) {
         world.pods.at("job-worker-0")
             .conditions.push_back({"PodScheduled", false, "Unschedulable", "0/9 nodes are available", world.now});
         world.now += 10s;
       },
       "PodUnschedulable", "0/9 nodes are available"},
      {"stuck in ContainerCreating",
       [](World& world) {
         world.pods.at("job-worker-0").node = "node-1";
         world.now += 301s;
       },
       "ContainerCreatingStuck", "a volume, a secret or the network"},
      {"a volume that is not there, by the word of the node",
       [](World& world) {
         api::Pod& pod = world.pods.at("job-worker-0");
         pod.node = "node-1";
         world.now += 11s;
         CHECK(world.look().ask_about == std::vector{pod.uid});
         world.kubelet_warnings = {{pod.uid, "configmap \"train\" not found"}};
       },
       "ContainerCreatingStuck", "configmap \"train\" not found; it starts once that is there"},
      {"a name that something else has",
       [](World& world) {
         world.pods.erase("job-worker-0");
         world.foreign_pods = {{"job-worker-0", std::nullopt}};
       },
       "NameTaken", "belongs to something else"},
      {"a pod that the API refuses",
       [](World& world) {
         world.pods.erase("job-worker-0");
         world.foreign_pods = {};
         world.refused = {{{Kind::Pod, "job-worker-0"}, "exceeded quota"}};
         world.services.erase("job-worker-0");
       },
       "CannotCreate", "exceeded quota"},
      {"a service that the API refuses beside its pod",
       [](World& world) {
         world.services.erase("job-worker-0");
         world.refused = {{{Kind::Service, "job-worker-0"}, "quota of services"}};
       },
       "CannotCreate", "the API refuses its service: quota of services"},
  }));
  INFO(row.situation);
  World world(spec_of(2));
  world.settle();
  row.happens(world);
  world.carry_out(world.look(), 0);
  CHECK(world.trouble() == row.reason);
  CHECK(world.state() == "Created");  // users' State is still the last condition
  REQUIRE(world.said(row.reason).size() == 1);
  CHECK_THAT(world.said(row.reason).front(), Catch::Contains(row.says) && Catch::Contains("job-worker-0"));
  world.foreign_pods.clear();
  world.refused.clear();
  world.kubelet_warnings.clear();
  world.settle();
  world.run_all();
  world.settle();
  CHECK(world.trouble().empty());
}

TEST_CASE("a name whose holder is ending is waited for in silence, for a while", "[decide]") {
  World world(spec_of(2));
  world.foreign_pods = {{"job-worker-0", world.now + 30s}};
  world.settle();
  CHECK(world.trouble().empty());
  CHECK(world.said("NameTaken").empty());
  CHECK_FALSE(world.pods.contains("job-worker-0"));
  world.now += 61s;
  world.settle();
  CHECK(world.trouble() == "NameTaken");
}

TEST_CASE("what all pods need and the API refuses is said, and no pod is blamed", "[decide]") {
  World world(spec_of(1), {{"trainyard.dev/network-policy", "true"}});
  const auto [kind, name] = GENERATE_COPY(std::pair{Kind::Secret, token_secret_name(world.job)},
                                          std::pair{Kind::NetworkPolicy, network_policy_name(world.job)});
  world.refused = {{{kind, name}, "exceeded quota"}};
  world.carry_out(world.look(), 1);
  CHECK(world.trouble() == "CannotCreate");
  REQUIRE(world.said("CannotCreate").size() == 1);
  CHECK_THAT(world.said("CannotCreate").front(), Catch::StartsWith(name) && Catch::Contains("exceeded quota"));
  world.refused.clear();
  world.settle();
  CHECK(world.trouble().empty());
}

TEST_CASE("a pod that hangs in Terminating is reported after its grace time", "[decide]") {
  World world(spec_of(1));
  world.settle();
  world.run_all();
  world.settle();
  world.pods.at("job-worker-0").deleted = world.now;
  world.settle();
  CHECK(world.trouble().empty());
  world.now += 30s;
  world.settle();
  CHECK(world.trouble() == "TerminatingStuck");
}

TEST_CASE("what comes right by itself within ten seconds is not warned of", "[decide]") {
  World world(spec_of(1));
  world.settle();
  api::Pod& pod = world.pods.at("job-worker-0");
  const bool is_claim = GENERATE(true, false);
  if (is_claim) {  // that is being bound
    pod.conditions.push_back({"PodScheduled", false, "Unschedulable", "unbound immediate claims", world.now});
  } else {  // an object that is applied after the job
    pod.containers = {
        {"pytorch", false, api::ContainerState::Waiting, "CreateContainerConfigError", "configmap \"x\" not found"}};
  }
  const auto warnings = [&] {
    return std::ranges::count_if(world.events, [](const EventText& event) { return event.is_warning; });
  };
  world.now += 9s;
  world.settle();
  CHECK(warnings() == 0);
  CHECK(world.trouble().empty());
  CHECK(world.look().look_again <= world.now + 1s);
  SECTION("and does") {
    world.run_all();
    world.now += 1h;
    world.settle();
    CHECK(warnings() == 0);
  }
  SECTION("and does not") {
    world.now += 1s;
    world.settle();
    CHECK(warnings() == 2);  // the reference's and ours
    CHECK_FALSE(world.trouble().empty());
  }
}

TEST_CASE("a foreign PodGroup or autoscaler, and a PodGroup that is refused, are told of", "[decide]") {
  const Json metrics = Json::array({{{"type", "Resource"}}});
  World world(spec_of(2, {{"elasticPolicy", {{"minReplicas", 1}, {"maxReplicas", 2}, {"metrics", metrics}}}}));
  std::string reason = "NameTaken", says;
  SECTION("a foreign PodGroup") {
    world.settings.gang_scheduler = GENERATE(GangScheduler::Volcano, GangScheduler::SchedulerPlugins);
    world.foreign_kinds = {Kind::PodGroup};
    says = "the PodGroup job belongs to something else";
  }
  SECTION("a foreign autoscaler") {
    world.foreign_kinds = {Kind::Autoscaler};
    says = "the HorizontalPodAutoscaler job belongs to something else";
  }
  SECTION("a PodGroup that is refused") {
    world.settings.gang_scheduler = GENERATE(GangScheduler::Volcano, GangScheduler::SchedulerPlugins);
    world.refused = {{{Kind::PodGroup, "job"}, "quota of PodGroups"}};
    reason = "CannotCreate";
    says = "quota of PodGroups";
  }
  world.carry_out(world.look(), 0);
  CHECK(world.trouble() == reason);
  REQUIRE(world.said(reason).size() == 1);
  CHECK_THAT(world.said(reason).front(), Catch::Contains(says));
}
