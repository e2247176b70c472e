#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

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
  SECTION("more than any node has, where something makes nodes") {
    pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 8;
    look_at(spec);
    REQUIRE(world.trouble() == "NeverFits");
    world.nodes["node-1"].provider_id = "k3s://node-1";
    world.settle();
    CHECK(world.trouble() == "NeverFits");
    world.nodes["node-1"].provider_id = "aws:///eu-central-1a/i-0123";
    world.settle();
    CHECK(world.trouble().empty());
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
