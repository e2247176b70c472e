#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

TEST_CASE("a job whose status is lost goes on as its pods' generation, and nothing is restarted", "[decide]") {
  World world = running_gang();
  for (int failure = 0; failure < 4; ++failure) {
    world.end("job-worker-1", 1);
    world.settle();
    world.finish_all_ending();
    world.now += 10min;
    world.settle();
    world.run_all();
    world.settle();
  }
  REQUIRE(world.job.status.restarts.generation == 5);
  const auto before = world.pods;
  world.job.status = {};
  world.settle();
  CHECK(world.job.status.restarts.generation == 5);
  CHECK(world.state() == "Running");
  for (const auto& [name, pod] : world.pods) CHECK(pod.uid == before.at(name).uid);
  CHECK(world.said("StatusLost").size() == 1);
  world.end("job-worker-1", 1);
  world.settle();
  CHECK(world.job.status.restarts.generation == 6);
}

TEST_CASE("a job whose status and pods are lost goes on from what a refused rank says", "[decide]") {
  World world = running_gang({{"runPolicy", {{"backoffLimit", 0}}}}, GENERATE("OnFailure", "ExitCode", "Never"));
  const std::string refusal =
      "/checkpoints: generation {} of this job has written here, this is generation 1; a process left over from an "
      "earlier life?";
  SECTION("a newer generation") {
    world.end("job-worker-0", 138);
    world.end("job-master-0", 2, fmt::format(fmt::runtime(refusal), 5));
    world.settle();
    CHECK(world.job.status.restarts.generation == 6);
    CHECK(world.job.status.restarts.count == 0);
    CHECK(world.job.status.restarts.last_cause->reason == "StatusLost");
    CHECK_FALSE(world.has("Failed"));
    world.finish_all_ending();
    world.settle();
    for (const auto& [name, pod] : world.pods) CHECK(pod.generation == 6);
  }
  SECTION("what is no newer generation is a failure as any") {
    world.end("job-master-0", 2, fmt::format(fmt::runtime(refusal), GENERATE(0, 1)));
    world.settle();
    CHECK(world.has("Failed"));
  }
}
