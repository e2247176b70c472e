#include <catch2/catch.hpp>

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
         world.refused = {{"job-worker-0", "exceeded quota"}};
         world.services.erase("job-worker-0");
       },
       "CannotCreate", "exceeded quota"},
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

TEST_CASE("a job that asks for billions of pods is reported, and none is planned", "[decide]") {
  World world(spec_of(1, Json::parse(R"({"pytorchReplicaSpecs": {"Worker": {"replicas": 2147483647}}})")));
  world.settle();
  CHECK(world.trouble() == "InvalidSpec");
  CHECK_THAT(world.said("InvalidSpec").front(), Catch::Contains("Worker.replicas is 2147483647; 100000 is the most"));
  CHECK(world.pods.empty());
}

TEST_CASE("what all pods need and the API refuses is said, and no pod is blamed", "[decide]") {
  World world(spec_of(1), {{"trainyard.dev/network-policy", "true"}});
  const std::string name = GENERATE_COPY(token_secret_name(world.job), network_policy_name(world.job));
  world.refused = {{name, "exceeded quota"}};
  world.carry_out(world.look(), 1);
  CHECK(world.trouble() == "CannotCreate");
  REQUIRE(world.said("CannotCreate").size() == 1);
  CHECK_THAT(world.said("CannotCreate").front(), Catch::StartsWith(name) && Catch::Contains("exceeded quota"));
  world.refused.clear();
  world.settle();
  CHECK(world.trouble().empty());
}

TEST_CASE("a pod whose deletion was cut off between its two steps is deleted again", "[decide]") {
  World world(spec_of(1));
  world.settle();
  api::Pod& pod = world.pods.at("job-worker-0");
  const std::string uid = pod.uid;
  pod.deleted = world.now;
  pod.is_half_deleted = true;
  world.job.status.restarts.generation = 2;  // as when that generation's pods were being removed
  world.settle();
  CHECK(world.pods.at("job-worker-0").uid == uid);
  CHECK(world.look().look_again == world.now + 2s);
  world.now += 2s;
  world.settle();
  CHECK(world.pods.at("job-worker-0").uid != uid);
  CHECK_FALSE(world.pods.at("job-worker-0").deleted);
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

TEST_CASE("a job that nobody can run says so in its status, and no pod is made", "[decide]") {
  Json spec = spec_of(1);
  std::string says;
  SECTION("no container called pytorch") {
    spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "train";
    says = "no container named pytorch";
  }
  SECTION("no replicas") {
    spec["pytorchReplicaSpecs"] = Json::object();
    says = "asks for no pod";
  }
  World world(spec);
  if (says.empty()) {
    world.job.name = std::string(60, 'x');
    says = "shorter name";
  }
  world.settle();
  CHECK(world.trouble() == "InvalidSpec");
  CHECK_THAT(world.job.status.conditions.front().message, Catch::Contains(says));
  CHECK(world.pods.empty());
  CHECK(world.settle() == 0);
}

TEST_CASE("a gang that no node can ever hold is told what does not fit", "[decide]") {
  Json spec = spec_of(3);
  Json& pod = spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"];
  World world(spec_of(3));
  const auto look_at = [&](const Json& changed) {
    world = World(changed);
    world.nodes["node-1"].allocatable = {{"nvidia.com/gpu", "4"}, {"cpu", "8"}};
    world.nodes["node-1"].labels = {{"pool", "gpu"}};
    world.settle();
    const api::Condition* const found = find_condition(world.job.status, condition::kTrouble);
    return found ? found->reason + ": " + found->message : "";
  };
  SECTION("it fits") {
    CHECK(look_at(spec).empty());
  }
  SECTION("a selector that no node meets") {
    pod["nodeSelector"] = {{"pool", "cpu"}};
    CHECK_THAT(look_at(spec),
               Catch::Contains("NeverFits") && Catch::Contains("no node has that") && Catch::Contains("pool=cpu"));
  }
  SECTION("more than any node has") {
    pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 8;
    CHECK_THAT(look_at(spec), Catch::Contains("8 nvidia.com/gpu"));
  }
  SECTION("one host for all, and no host so big") {
    pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "2";
    pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {{"topologyKey", "kubernetes.io/hostname"},
         {"labelSelector",
          {{"matchExpressions",
            {{{"key", "training.kubeflow.org/job-name"}, {"operator", "In"}, {"values", {"job"}}}}}}}}};
    CHECK_THAT(look_at(spec), Catch::Contains("share one host") && Catch::Contains("6 nvidia.com/gpu"));
  }
}

TEST_CASE("pods' own reports are relayed in the reference's words, once", "[decide]") {
  World world(spec_of(1));
  world.settings.restart_scope = RestartScope::Replica;
  world.settle();
  world.run_all();
  world.pods.at("job-worker-0").containers = {
      {"pytorch", false, api::ContainerState::Terminated, "Error", "no such file", 5}};
  world.settle();
  world.settle();
  CHECK(world.said("Error") ==
        std::vector<std::string>{
            "Error pod job-worker-0 container pytorch exitCode: 5 terminated message: no such file"});
  CHECK(world.said("ExitedWithCode") == std::vector<std::string>{"Pod: ns.job-worker-0 exited with code 5"});
}
