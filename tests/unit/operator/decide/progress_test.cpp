#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

World in_training(const Json& changes = Json::object()) {
  World world(spec_of(1, changes));
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

void reports(World& world, int64_t step, const std::string& checkpoint_error = "",
             const std::string& metrics_error = "") {
  world.progress = api::Progress{.step = step,
                                 .total_steps = 1000,
                                 .loss = 2.5,
                                 .tokens_per_second = 1000.0,
                                 .checkpoint_step = 50,
                                 .checkpoint_error = checkpoint_error,
                                 .metrics_error = metrics_error,
                                 .updated = world.now,
                                 .advanced = world.now};
  world.settle();
}

/// Of a job that has posted twice: its speed is known.
World with_speed() {
  World world = in_training();
  reports(world, 100);
  world.now += 20s;
  reports(world, 120);
  REQUIRE(world.job.status.progress->eta == "14m40s");
  REQUIRE(world.job.status.progress->tokens_per_second == 1000.0);
  return world;
}

bool knows_speed(const World& world) {
  const auto& progress = world.job.status.progress;
  return progress && (!progress->eta.empty() || progress->tokens_per_second.has_value());
}

}  // namespace

TEST_CASE("failing checkpoints are a trouble and an event at once, with what would be lost, until one is saved",
          "[decide]") {
  World world = in_training();
  reports(world, 60);
  world.now += 1s;
  reports(world, 100, "No space left on device");
  CHECK(world.job.status.progress->checkpoint_error == "No space left on device");
  CHECK(world.trouble() == "CheckpointFailing");
  CHECK(world.said("CheckpointFailing") ==
        std::vector<std::string>{"the latest checkpoint could not be saved: No space left on device; if the job ends "
                                 "now, all steps since step 50 are lost"});
  world.now += 20s;
  reports(world, 150, "step 150: No space left on device");
  CHECK(world.said("CheckpointFailing").size() == 1);
  world.now += 20s;
  reports(world, 200);
  CHECK(world.trouble().empty());
}

TEST_CASE("a metrics file that steps are missing from is a trouble and an event", "[decide]") {
  World world = in_training();
  reports(world, 60, "", "metrics/metrics.jsonl: No space left on device");
  CHECK(world.trouble() == "MetricsFailing");
  CHECK_THAT(world.said("MetricsFailing").back(), Catch::Contains("metrics.jsonl: No space left on device"));
  world.now += 20s;
  reports(world, 70);
  CHECK(world.trouble().empty());
}

TEST_CASE("speed and the rest's time are known while the gang gets on, and not while it hangs", "[decide]") {
  World world = with_speed();
  world.now += 59s;
  world.progress->updated = world.now;  // rank 0 posts that nothing is new
  CHECK(world.look().look_again == world.now + 1s);
  world.settle();
  CHECK(knows_speed(world));
  world.now += 1s;
  world.settle();
  CHECK_FALSE(knows_speed(world));
  CHECK(world.job.status.progress->step == 120);
  CHECK(world.job.status.progress->loss == 2.5);
  world.now += 20s;
  world.progress->updated = world.now;
  CHECK(world.settle() == 0);
  world.now += 10s;
  reports(world, 130);
  CHECK(knows_speed(world));
}

TEST_CASE("a job that is suspended or starts anew has no speed", "[decide]") {
  World world = with_speed();
  SECTION("suspended") {
    world.job.spec.run_policy.suspend = true;
  }
  SECTION("restarting") {
    world.end("job-worker-0", 1);
  }
  world.settle();
  CHECK_FALSE(knows_speed(world));
  CHECK(world.job.status.progress->step == 120);
}

TEST_CASE("what the new gang does not know yet is not shown as 0", "[decide]") {
  World world = with_speed();
  world.end("job-worker-0", 1);
  world.settle();
  world.finish_all_ending();
  world.settle();
  world.run_all();
  world.now += 5s;
  world.progress = api::Progress{.step = 50, .total_steps = 1000, .updated = world.now, .advanced = world.now};
  world.now += 10s;
  world.settle();
  const Json written = api::to_json(world.job.status)["progress"];
  CHECK(written["step"] == 50);
  CHECK_FALSE(written.contains("loss"));
  CHECK_FALSE(written.contains("tokensPerSecond"));
  CHECK_FALSE(written.contains("eta"));
}

TEST_CASE("a job that has succeeded shows its last step, whatever was lost on the way", "[decide]") {
  World world = with_speed();
  SECTION("the last post came within ten seconds of the one before") {
    world.now += 1s;
    world.progress->step = 1000, world.progress->updated = world.now;
    world.end("job-master-0", 0);
  }
  SECTION("the last post was lost: the pod's termination message has it") {
    world.now += 100s;
    world.end("job-master-0", 0, R"({"step":1000,"totalSteps":1000,"loss":2.5,"checkpointStep":1000})");
  }
  world.settle();
  REQUIRE(world.has("Succeeded"));
  CHECK(world.job.status.progress->step == 1000);
  CHECK(world.job.status.progress->loss == 2.5);
  CHECK(world.job.status.progress->eta.empty());
  CHECK(world.settle() == 0);
  world.now += 1h;
  CHECK(world.settle() == 0);
}

TEST_CASE("a termination message that is no post is none", "[decide]") {
  World world = with_speed();
  world.end("job-master-0", 0, GENERATE("done", "[1]", R"({"loss": 2})", R"({"step": 1)"));
  world.settle();
  CHECK(world.job.status.progress->step == 120);
  CHECK(world.job.status.progress->eta.empty());
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
    world.progress = api::Progress{.step = step,
                                   .total_steps = 100,
                                   .loss = 2.212388589654782,
                                   .updated = world.now,
                                   .advanced = world.now};
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
  world.now += 1min;
  world.settle();
  CHECK_FALSE(world.look().look_again);
}
