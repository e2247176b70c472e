#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;

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

TEST_CASE("a job whose pods or services no API server takes says so, and none is made", "[decide]") {
  Json spec = spec_of(1);
  Json& pod = spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"];
  std::string says;
  SECTION("ports") {
    pod["hostNetwork"] = true;
    pod["containers"].push_back({{"name", "side"}, {"image", "i"}, {"ports", {{{"containerPort", 23456}}}}});
    says = "containers[1].ports[0].hostPort: Duplicate value: \"TCP//23456\"";
  }
  SECTION("names") {
    pod["initContainers"] = {{{"name", "pytorch"}, {"image", "i"}}};
    says = "initContainers[0].name: Duplicate value: \"pytorch\"";
  }
  World world(spec);
  world.settle();
  CHECK(world.trouble() == "InvalidSpec");
  CHECK_THAT(world.job.status.conditions.front().message,
             Catch::StartsWith("spec.pytorchReplicaSpecs.Worker.template.spec." + says));
  CHECK(world.pods.empty());
  CHECK(world.services.empty());
}

TEST_CASE("a job that asks for billions of pods is reported, and none is planned", "[decide]") {
  World world(spec_of(1, Json::parse(R"({"pytorchReplicaSpecs": {"Worker": {"replicas": 2147483647}}})")));
  world.settle();
  CHECK(world.trouble() == "InvalidSpec");
  CHECK_THAT(world.said("InvalidSpec").front(), Catch::Contains("Worker.replicas is 2147483647; 100000 is the most"));
  CHECK(world.pods.empty());
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
