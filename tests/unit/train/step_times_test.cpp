#include "train/step_times.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "assemble/sharded_model.h"
#include "models/model.h"
#include "optim/adamw.h"
#include "support/faulty_communicator.h"
#include "support/ranks.h"
#include "train/trainer.h"
#include "unit/train/tiny_model.h"

namespace trainyard::train {
namespace {

using std::chrono::milliseconds;

constexpr int kWorld = 3;
constexpr int kSlow = 1;

/// Whether `holds(delay)` for some delay. A delay shows where it is long beside a step, and how long a step of this small
/// model takes depends on the machine, so longer ones are tried where a short one does not do.
bool holds_with_some_delay(const std::function<bool(milliseconds)>& holds) {
  return std::ranges::any_of(std::array{milliseconds(40), milliseconds(160), milliseconds(640)}, holds);
}

/// The same batch for ever, late where it is told to be.
class Batches final : public data::Loader {
 public:
  explicit Batches(milliseconds delay) : delay_(delay) {}
  data::Batch next() override {
    std::this_thread::sleep_for(delay_);  // stands for a slow disk
    const std::vector<int32_t> ids{1, 2, 3, 4, 5, 6, 7, 8};
    return {Tensor::from<int32_t>(ids, {1, 8}), Tensor::from<int32_t>(ids, {1, 8}), {}, 8};
  }
  [[nodiscard]] nlohmann::json state() const override { return {}; }
  void load_state(const nlohmann::json&) override {}
  [[nodiscard]] int64_t sequences_seen() const override { return 0; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return kWorld; }
  [[nodiscard]] int64_t sequences_per_step() const override { return kWorld; }
  [[nodiscard]] int64_t sequence_length() const override { return 8; }

 private:
  milliseconds delay_;
};

enum class Fault { None, SlowReader, SlowRank, SlowCollective };

/// Four steps of rank `comm.rank()`; results as its callbacks saw them.
std::vector<StepResult> steps_with(Fault fault, milliseconds delay, std::unique_ptr<comm::Communicator> inner) {
  const bool is_slow = inner->rank() == kSlow;
  test::FaultyCommunicator world(std::move(inner),
                                 {.delay = fault == Fault::SlowCollective ? delay : milliseconds(0)});
  ShardedModel sharded = shard_model(test::tiny_model(), world, {.mesh = {.replicate = 1, .shard = kWorld}});
  fill_random(*sharded.engine, 3);
  if (fault == Fault::SlowRank && is_slow)
    sharded.engine->on_event([delay](const shard::Event& event) {  // a slow device, in the middle of a pass
      if (event.kind == shard::Event::Kind::Use && event.group == "root") std::this_thread::sleep_for(delay);
    });
  optim::AdamW optimizer(*sharded.engine, {});
  optim::LossScaler scaler;
  Batches loader(fault == Fault::SlowReader && is_slow ? delay : milliseconds(0));
  std::vector<StepResult> results;
  Trainer trainer({world, *sharded.model, *sharded.engine, optimizer, scaler, loader},
                  {.total_steps = 4, .schedule = optim::schedule_of({}, 4)},
                  {.asked_to_stop = [] { return false; },
                   .validate = [](int64_t) { return std::nullopt; },
                   .on_step = [&](const StepResult& result) { results.push_back(result); },
                   .is_checkpoint_due = [](int64_t) { return false; },
                   .save = [](const Progress&) {}});
  Progress progress;
  trainer.run(progress);
  world.close(std::chrono::steady_clock::now() + std::chrono::seconds(30));
  return results;
}

/// The least of each column over the steps: what a busy machine adds to one step is not there.
StepTimes least(const std::vector<StepResult>& results) {
  StepTimes least = results.front().times;
  for (const StepResult& result : results) {
    least.data_wait = std::min(least.data_wait, result.times.data_wait);
    least.compute = std::min(least.compute, result.times.compute);
    least.communication = std::min(least.communication, result.times.communication);
  }
  return least;
}

std::vector<StepResult> rank_0_with(Fault fault, milliseconds delay) {
  auto communicators = comm::make_in_process(kWorld, std::chrono::seconds(60));
  const auto steps_of = [&](int rank) {
    return steps_with(fault, delay, std::move(communicators[static_cast<size_t>(rank)]));
  };
  return test::run_threads(kWorld, steps_of).front();
}

}  // namespace

TEST_CASE("step times: a slow reader, a slow rank and a slow network each show in their own column", "[train]") {
  CHECK(holds_with_some_delay([](milliseconds delay) {
    const StepTimes times = least(rank_0_with(Fault::SlowReader, delay));
    return times.data_wait > times.compute && times.data_wait > times.communication;
  }));
  CHECK(holds_with_some_delay([](milliseconds delay) {
    const StepTimes times = least(rank_0_with(Fault::SlowRank, delay));
    return times.compute > times.data_wait && times.compute > times.communication;
  }));
  CHECK(holds_with_some_delay([](milliseconds delay) {
    const StepTimes times = least(rank_0_with(Fault::SlowCollective, delay));
    return times.communication > times.data_wait && times.communication > times.compute;
  }));
}

TEST_CASE("step times: the rank that the others wait for is named, on all of them, and nobody for a slow network",
          "[train]") {
  const auto steps_that_name_it = [](Fault fault, milliseconds delay) {
    return std::ranges::count_if(rank_0_with(fault, delay),
                                 [](const StepResult& one) { return one.slow && one.slow->rank == kSlow; });
  };
  // Of 4 steps, one may be disturbed.
  CHECK(holds_with_some_delay([&](milliseconds delay) { return steps_that_name_it(Fault::SlowReader, delay) >= 3; }));
  CHECK(holds_with_some_delay([&](milliseconds delay) { return steps_that_name_it(Fault::SlowRank, delay) >= 3; }));
  CHECK(holds_with_some_delay(
      [&](milliseconds delay) { return steps_that_name_it(Fault::SlowCollective, delay) <= 1; }));
}

TEST_CASE("step times: a rank stands out by half as much again as the median of the others, and 10 ms", "[train]") {
  CHECK_FALSE(slow_rank(std::vector{100.0}));
  CHECK_FALSE(slow_rank(std::vector{100.0, 149.0}));
  CHECK_FALSE(slow_rank(std::vector{1.0, 10.0}));
  CHECK(slow_rank(std::vector{100.0, 151.0})->rank == 1);
  CHECK(slow_rank(std::vector{200.0, 100.0, 110.0, 90.0})->rank == 0);
  CHECK(slow_rank(std::vector{200.0, 100.0, 110.0, 90.0})->others == 100);
  CHECK_FALSE(slow_rank(std::vector{200.0, 100.0, 190.0, 190.0}));
}

TEST_CASE("step times: a slow rank is told once, and again when that is over", "[train]") {
  SlowRankNews news;
  const SlowRank slow{.rank = 3, .milliseconds = 412.2, .others = 250};
  const auto steps = [&](int slow_ones, int others) {
    for (int step = 0; step < slow_ones; ++step) news.step(slow);
    for (int step = 0; step < others; ++step) news.step({});
  };
  steps(2, 1);
  CHECK(news.at_line().empty());  // too few to judge by
  steps(1, 1);
  CHECK_THAT(news.at_line(),
             Catch::Contains("rank 3 is slow") && Catch::Contains("412 ms") && Catch::Contains("250 ms"));
  steps(5, 0);
  CHECK(news.at_line().empty());
  steps(2, 3);
  CHECK(news.at_line() == "no rank stands out as slow any more");
  steps(0, 5);
  CHECK(news.at_line().empty());
}

}  // namespace trainyard::train
