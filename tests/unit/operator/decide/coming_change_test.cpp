#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

/// As `kubectl apply -k` does with a changed train.yaml: the ConfigMap has another name.
void name_another_config_map(World& world, api::ReplicaType type, const char* name) {
  Json& spec = world.job.spec.replicas.at(type).pod_template["spec"];
  spec["volumes"] = {{{"name", "config"}, {"configMap", {{"name", name}}}}};
}

World running_job(const Json& annotations = Json::object()) {
  World world(spec_of(2), annotations);
  for (const auto type : {api::ReplicaType::Master, api::ReplicaType::Worker})
    name_another_config_map(world, type, "train-1");
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

}  // namespace

TEST_CASE("a template that is changed while the job runs is told of, and the next generation takes it", "[decide]") {
  World world = running_job();
  CHECK(world.trouble().empty());
  const std::string before = world.pods.at("job-worker-0").template_digest;
  name_another_config_map(world, api::ReplicaType::Worker, "train-2");
  world.settle();
  CHECK(world.trouble() == "TemplateChanged");
  REQUIRE(world.said("TemplateChanged").size() == 1);
  CHECK_THAT(world.said("TemplateChanged")[0],
             Catch::Contains("of Worker has changed") && Catch::Contains("they go on with what they began with, and the next "
                                                                         "generation, after a failure or a restart"));
  CHECK(world.state() == "Running");
  CHECK(world.pods.at("job-worker-0").template_digest == before);  // nothing is restarted for it

  world.end("job-worker-1", 137);
  world.settle();
  world.finish_all_ending();
  world.settle();
  CHECK(world.pods.at("job-worker-0").template_digest != before);
  world.run_all();
  world.settle();
  CHECK(world.trouble().empty());
  CHECK(world.said("TemplateChanged").size() == 1);
}

TEST_CASE("a template that is put back is no trouble any more, and another change is told of again", "[decide]") {
  World world = running_job();
  for (const auto type : {api::ReplicaType::Master, api::ReplicaType::Worker})
    name_another_config_map(world, type, "train-2");
  world.settle();
  CHECK_THAT(world.said("TemplateChanged").back(), Catch::Contains("of Master and Worker has changed"));
  for (const auto type : {api::ReplicaType::Master, api::ReplicaType::Worker})
    name_another_config_map(world, type, "train-1");
  world.settle();
  CHECK(world.trouble().empty());
  name_another_config_map(world, api::ReplicaType::Master, "train-3");
  world.settle();
  CHECK(world.said("TemplateChanged").size() == 2);
}

TEST_CASE("a changed template: other trouble comes first, and pods that an older operator made are not judged",
          "[decide]") {
  World world = running_job({{"trainyard.dev/restart-scope", "replica"}});
  SECTION("replica by replica each new pod takes it") {
    name_another_config_map(world, api::ReplicaType::Worker, "train-2");
    world.settle();
    CHECK_THAT(world.said("TemplateChanged").at(0), Catch::Contains("each pod that is made anew is made by the new one"));
    world.pods.at("job-worker-0").containers = {
        {"pytorch", false, api::ContainerState::Waiting, "ImagePullBackOff", "Back-off pulling image"}};
    world.now += 11s;
    world.settle();
    CHECK(world.trouble() == "ImagePullFailed");
  }
  SECTION("none says by which it was made") {
    for (auto& [name, pod] : world.pods) pod.template_digest.clear();
    name_another_config_map(world, api::ReplicaType::Worker, "train-2");
    world.settle();
    CHECK(world.trouble().empty());
  }
}

namespace {

void posts_config(World& world, const std::string& changed) {
  world.now += 5s;
  world.progress = api::Progress{
      .step = 100, .total_steps = 1000, .config_changed = changed, .updated = world.now, .advanced = world.now};
  world.settle();
}

}  // namespace

TEST_CASE("a configuration that is edited in place is told of, and the next generation takes it", "[decide]") {
  World world = running_job();
  posts_config(world, "");
  CHECK(world.trouble().empty());
  posts_config(world, "train.yaml (sha256 2)");
  CHECK(world.trouble() == "ConfigChanged");
  CHECK(world.said("ConfigChanged") ==
        std::vector<std::string>{
            "the configuration has changed since rank 0 read it: train.yaml (sha256 2); the job goes on with what it "
            "began with, and the next generation, after a failure or a restart, takes the new one; to have it now suspend the "
            "job and resume it, or else put it back"});
  CHECK(world.state() == "Running");  // nothing is restarted for it
  CHECK(world.job.status.restarts.generation == 1);
  posts_config(world, "train.yaml (sha256 2)");
  CHECK(world.said("ConfigChanged").size() == 1);

  world.poster = 1;
  const bool is_suspended = GENERATE(false, true);
  if (is_suspended) {
    world.job.spec.run_policy.suspend = true;
    world.settle();
    world.finish_all_ending();
    world.settle();
    world.job.spec.run_policy.suspend = false;
  } else {
    world.end("job-worker-1", 137);
    world.settle();
    world.finish_all_ending();
  }
  world.settle();
  world.run_all();
  world.settle();
  REQUIRE(world.job.status.restarts.generation == 2);
  CHECK(world.trouble().empty());  // also before it has posted
  world.poster = 2;
  posts_config(world, "");
  CHECK(world.trouble().empty());
  CHECK(world.said("ConfigChanged").size() == 1);
}

TEST_CASE("a configuration that is put back is no trouble any more, and another edit is told of again", "[decide]") {
  World world = running_job();
  posts_config(world, "train.yaml (sha256 2)");
  posts_config(world, "");
  CHECK(world.trouble().empty());
  posts_config(world, "train.yaml (sha256 3)");
  CHECK(world.trouble() == "ConfigChanged");
  CHECK(world.said("ConfigChanged").size() == 2);
  SECTION("a changed template comes first, and both are told of") {
    name_another_config_map(world, api::ReplicaType::Worker, "train-2");
    world.settle();
    CHECK(world.trouble() == "TemplateChanged");
    CHECK(world.said("TemplateChanged").size() == 1);
  }
  SECTION("a job that ends takes nothing new any more") {
    world.end("job-master-0", 0);
    world.settle();
    REQUIRE(world.has("Succeeded"));
    CHECK(world.trouble().empty());
    CHECK_FALSE(api::to_json(world.job.status)["progress"].contains("configChanged"));
  }
}
