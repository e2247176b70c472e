#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

/// A master and two workers with a deadline, made and not running yet.
World with_deadline(int seconds, const Json& changes = Json::object(), const std::string& restart = "OnFailure") {
  World world(spec_of(2, changes, restart),
              {{"trainyard.dev/progress-deadline-seconds", std::to_string(seconds)}});
  world.settle();
  return world;
}

World under_deadline(int seconds, const Json& changes = Json::object(), const std::string& restart = "OnFailure") {
  World world = with_deadline(seconds, changes, restart);
  world.run_all();
  world.settle();
  return world;
}

/// Rank 0 posts; the step is new.
void step_done(World& world, int64_t step) {
  world.progress = api::Progress{.step = step, .total_steps = 1000, .updated = world.now, .advanced = world.now};
  world.settle();
}

/// Rank 0 posts that nothing has changed but who is silent.
void stands_at(World& world, const std::vector<int>& silent = {}) {
  world.progress->updated = world.now;
  world.progress->silent_ranks = silent;
  world.settle();
}

int64_t generation(const World& world) {
  return world.job.status.restarts.generation;
}

/// Ten minutes in which rank 0 posts that it stands still.
void wait_long(World& world) {
  for (int i = 0; i < 60; ++i) {
    world.now += 10s;
    if (world.progress) stands_at(world);
    world.settle();
  }
}

}  // namespace

TEST_CASE("a stalled job is restarted on time, and the rank that is silent, its pod and node are named", "[decide]") {
  World world = under_deadline(120);
  world.pods.at("job-worker-1").node = "node-2";
  world.add_node("node-2");
  step_done(world, 5);
  world.now += 119s;
  stands_at(world, {2});
  CHECK(world.look().look_again <= world.now + 1s);
  CHECK(generation(world) == 1);
  world.now += 1s;
  world.settle();
  CHECK(generation(world) == 2);
  const auto& cause = world.job.status.restarts.last_cause;
  CHECK(cause->reason == "Stalled");
  CHECK(cause->pod == "job-worker-1");
  CHECK(cause->node == "node-2");
  CHECK(cause->message == "no progress for 2 min; silent: rank 2, in pod job-worker-1 on node node-2");
  CHECK(world.said("PyTorchJobRestarting").back() ==
        "PyTorchJob job is restarting because it has stalled: no progress for 2 min; silent: rank 2, in pod "
        "job-worker-1 on node node-2; the whole gang starts anew as generation 2");
}

TEST_CASE("the deadline counts while all pods run: one that no node takes is waited for", "[decide]") {
  World world = with_deadline(15, {{"runPolicy", {{"backoffLimit", 1}}}});
  world.run("job-master-0");
  world.run("job-worker-0");
  world.settle();
  CHECK(world.state() == "Running");
  step_done(world, 0);
  wait_long(world);
  CHECK(generation(world) == 1);
  CHECK(world.job.status.restarts.count == 0);
  world.run("job-worker-1");
  world.settle();
  world.now += 14s;
  stands_at(world, {2});
  CHECK(generation(world) == 1);
  world.now += 1s;
  world.settle();
  CHECK(generation(world) == 2);
}

TEST_CASE("the deadline counts from when the operator can be posted to", "[decide]") {
  World world = under_deadline(30);
  step_done(world, 5);
  world.now += 47s;  // it is away, and comes back
  world.listens_since = world.now;
  world.settle();
  CHECK(generation(world) == 1);
  world.now += 10min;  // no post has come: nothing tells of a stall
  world.settle();
  CHECK(generation(world) == 1);
  CHECK(world.trouble() == "NoProgressPosted");
  step_done(world, 80);
  CHECK(world.trouble().empty());
  world.now += 29s;
  stands_at(world, {1});
  CHECK(generation(world) == 1);
  world.now += 1s;
  world.settle();
  CHECK(generation(world) == 2);
}

TEST_CASE("what never arrives, and what the gang before posted, is no stall, and is told of", "[decide]") {
  World world = under_deadline(30);
  SECTION("no post at all") {}
  SECTION("of the generation before") {
    step_done(world, 5);
    world.poster = 0;
  }
  world.now += 10min;
  world.settle();
  CHECK(generation(world) == 1);
  CHECK(world.trouble() == "NoProgressPosted");
  CHECK(world.said("NoProgressPosted").size() == 1);
}

TEST_CASE("posts that the operator refuses are no stall, and are told of with the reason", "[decide]") {
  World world = under_deadline(30);
  step_done(world, 5);
  world.refusal = "step is 1.5; an integer from 0 on is expected";
  world.now += 10min;
  world.settle();
  CHECK(generation(world) == 1);
  CHECK(world.trouble() == "ProgressRefused");
  CHECK_THAT(world.said("ProgressRefused").back(), Catch::Contains("step is 1.5"));
  world.refusal.clear();
  step_done(world, 6);
  CHECK(world.trouble().empty());
}

TEST_CASE("while a node's grace runs nothing stalls, and its loss spends no budget", "[decide]") {
  World world = under_deadline(30);
  world.add_node("node-2");
  world.pods.at("job-worker-1").node = "node-2";
  step_done(world, 5);
  world.now += 20s;
  world.add_node("node-2", false);
  SECTION("lost") {
    for (int i = 0; i < 59; ++i) {
      world.now += 1s;
      stands_at(world, {2});
      REQUIRE(generation(world) == 1);
    }
    world.now += 1s;
    world.settle();
    CHECK(generation(world) == 2);
    CHECK(world.job.status.restarts.last_cause->reason == "NodeLost");
    CHECK(world.job.status.restarts.count == 0);
  }
  SECTION("back again: the time counts anew") {
    world.now += 40s;
    world.add_node("node-2");
    stands_at(world, {2});
    CHECK(generation(world) == 1);
    world.now += 29s;
    stands_at(world, {2});
    CHECK(generation(world) == 1);
    world.now += 1s;
    world.settle();
    CHECK(generation(world) == 2);
  }
}

TEST_CASE("a stall on a node that turns not ready right after is counted as the node's loss", "[decide]") {
  World world = under_deadline(30);
  world.add_node("node-2");
  world.pods.at("job-worker-1").node = "node-2";
  step_done(world, 5);
  world.now += 30s;
  stands_at(world, {2});
  REQUIRE(world.job.status.restarts.count == 1);
  world.now += 15s;
  world.add_node("node-2", false);
  world.settle();
  CHECK(world.job.status.restarts.count == 0);
  CHECK(world.job.status.restarts.disruptions == 1);
  CHECK(world.job.status.restarts.last_cause->reason == "NodeLost");
  CHECK(world.job.status.restarts.last_cause->node == "node-2");
}

TEST_CASE("a stall that would fail the job waits until a node's end would be known", "[decide]") {
  const bool is_never = GENERATE(true, false);
  const Json no_budget = {{"runPolicy", {{"backoffLimit", 0}}}};
  World world = is_never ? under_deadline(30, Json::object(), "Never") : under_deadline(30, no_budget);
  step_done(world, 5);
  world.now += 59s;
  stands_at(world, {2});
  CHECK_FALSE(world.has("Failed"));
  world.now += 1s;
  world.settle();
  CHECK(world.has("Failed"));
  CHECK(world.job.status.restarts.last_cause->pod == "job-worker-1");
}

TEST_CASE("a short deadline waits until the ranks can have said who is silent", "[decide]") {
  World world = under_deadline(8);
  step_done(world, 5);
  SECTION("they have") {
    world.now += 20s;
    stands_at(world, {1});
    CHECK(generation(world) == 2);
    CHECK(world.job.status.restarts.last_cause->pod == "job-worker-0");
  }
  SECTION("none is: nobody is blamed") {
    world.now += 24s;
    stands_at(world);
    CHECK(generation(world) == 1);
    world.now += 1s;
    world.settle();
    CHECK(generation(world) == 2);
    CHECK(world.job.status.restarts.last_cause->pod.empty());
    CHECK(world.job.status.restarts.last_cause->message == "no progress for 25 s; no rank is silent");
  }
  SECTION("rank 0 itself has not posted for long") {
    world.now += 15s;
    world.settle();
    CHECK(generation(world) == 2);
    CHECK(world.job.status.restarts.last_cause->pod == "job-master-0");
    CHECK_THAT(world.job.status.restarts.last_cause->message,
               Catch::Contains("rank 0, which has posted nothing for 15 s"));
  }
}

TEST_CASE("of several that failed the one that ended first is named, and victims are not counted", "[decide]") {
  World world = under_deadline(30);
  const auto end = [&](const char* name, int code, std::chrono::seconds after) {
    world.end(name, code);
    world.pods.at(name).containers.front().ended = world.now + after;
  };
  world.now += 1s;
  end("job-master-0", 1, 5s);
  end("job-worker-1", 1, 3s);
  end("job-worker-0", 138, 1s);
  world.now += 6s;
  world.settle();
  CHECK(world.job.status.restarts.last_cause->pod == "job-worker-1");
  CHECK_THAT(world.said("PyTorchJobRestarting").back(),
             Catch::Contains("because 1 Worker replica(s) failed: job-worker-1 exited with code 1"));
}

TEST_CASE("ranks that ended for another's loss name the one that was silent and has not ended", "[decide]") {
  World world = under_deadline(300);
  step_done(world, 5);
  world.progress->silent_ranks = {2};
  for (const char* name : {"job-master-0", "job-worker-0"}) {
    world.end(name, 138, "rank 2 was lost");
    world.pods.at(name).containers.front().ended = world.now;
  }
  world.now += 10s;  // the kubelet of the silent one has nothing to tell
  world.settle();
  const auto& cause = world.job.status.restarts.last_cause;
  CHECK(cause->pod == "job-worker-1");
  CHECK(cause->node == "node-1");
  CHECK(cause->message == "rank 2 was silent when job-master-0 ended with code 138: rank 2 was lost");
  CHECK_THAT(world.said("PyTorchJobRestarting").back(), Catch::Contains("because 1 Worker replica(s) failed"));
}
