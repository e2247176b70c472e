#include "plan/layouts.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "base/error.h"

namespace trainyard::train {
namespace {

Job job_of(const char* preset, Placement placement, BatchShape batch) {
  Job job{{}, models::preset(preset), placement, accelerator("h100"), batch};
  job.config().parallel.param_dtype = config::Precision::BFloat16;
  job.config().training.batch_size = batch.rows;
  return job;
}

bool says(const Layout& layout, const std::string& word) {
  return layout.switches.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("layouts: the fastest that fit come first, and a plan with their switches says the same", "[train]") {
  Job job = job_of("llama3.1-8b", {16, 8}, {.rows = 2, .tokens = 8192});
  job.model.layers = 6;  // of 32, which would take longer to try
  const Layouts layouts = best_layouts(job);
  REQUIRE(layouts.best.size() == 5);
  CHECK(std::ranges::is_sorted(layouts.best, {}, &Layout::seconds));
  for (const Layout& layout : layouts.best) {
    CHECK(layout.bytes <= job.hardware.memory);
    CHECK(layout.mesh.world() == 16);
  }
  // The plan of the fastest, by the keys that its switches name.
  const Layout& best = layouts.best.front();
  Job same = job;
  same.config().parallel.context = best.mesh.context;
  same.config().parallel.tensor = best.mesh.tensor;
  if (says(best, "hybrid_shard")) same.config().parallel.strategy = config::Strategy::HybridShard;
  if (says(best, "shard_grad_op")) same.config().parallel.strategy = config::Strategy::ShardGradOp;
  if (says(best, "mode selective")) same.config().activation_checkpointing.mode = config::CheckpointingMode::Selective;
  if (says(best, "mode full")) same.config().activation_checkpointing.mode = config::CheckpointingMode::Full;
  same.config().training.sync_every_micro_batch = says(best, "sync_every_micro_batch");
  if (says(best, "batch_size 1")) same.config().training.batch_size = same.batch.rows = 1;
  same.config().training.accumulation_steps = 2 * 16 / (same.batch.rows * best.mesh.data_ranks());
  const Simulation plan = simulate(same);
  CHECK(plan.device_bytes() + job.hardware.fixed_memory == best.bytes);
  CHECK(plan.seconds == Approx(best.seconds));
  CHECK_THAT(layouts_text(job), Catch::Contains("16 ranks = replicate") && Catch::Contains(best.switches));
}

TEST_CASE("layouts: a model whose activations do not fit gets a part of each row", "[train]") {
  Job job = job_of("llama3.1-405b", {32, 8}, {.rows = 1, .tokens = 32768});
  job.model.layers = 4;                 // of 126, which would take longer to try
  job.config().parallel.replicate = 1;  // and so of the strategies one
  job.config().parallel.reduce_dtype = config::Precision::BFloat16;
  const Layouts layouts = best_layouts(job, 1);
  REQUIRE(layouts.best.size() == 1);
  CHECK(layouts.best.front().bytes <= job.hardware.memory);
  CHECK(layouts.best.front().mesh.context * layouts.best.front().mesh.tensor > 1);
  job.placement.ranks_per_node = 1;  // whose layers would exchange over the network
  job.batch.tokens = 65536;
  CHECK_THAT(layouts_text(job), Catch::Contains("have the same rows, each"));
}

TEST_CASE("layouts: layers are split inside a node, where heads divide", "[train]") {
  Job job = job_of("llama3.1-70b", {16, 8}, {.rows = 1, .tokens = 8192});
  job.model.layers = 4;
  bool has_tensor = false;
  for (const Layout& layout : best_layouts(job, 1000).best) {
    CHECK(8 % layout.mesh.tensor == 0);
    has_tensor = has_tensor || layout.mesh.tensor > 1;
  }
  CHECK(has_tensor);
  job.model.heads = 9, job.model.kv_heads = 3;
  for (const Layout& layout : best_layouts(job, 1000).best) CHECK(layout.mesh.tensor == 1);
}

TEST_CASE("layouts: where none fits, it says what comes nearest", "[train]") {
  const Job job = job_of("llama3.1-70b", {2, 2}, {.rows = 1, .tokens = 512});
  CHECK(best_layouts(job).best.empty());
  CHECK_THAT(layouts_text(job), Catch::StartsWith("none of the layouts tried (") && Catch::Contains("use more ranks"));
}

TEST_CASE("layouts: what is given stays, and the layout as it is given is always one of those tried", "[train]") {
  Job job = job_of("llama3.1-8b", {12, 6}, {.rows = 1, .tokens = 60});
  job.model.layers = 2;
  job.config().parallel.context = 3;
  const Layouts layouts = best_layouts(job, 100);  // whose rows are too short for anything else
  CHECK(std::ranges::any_of(layouts.best, [](const Layout& each) { return each.switches == "as given"; }));
  job.config().parallel.context = 1;
  job.config().parallel.shard = 4;
  for (const Layout& each : best_layouts(job, 100).best) CHECK(each.mesh.shard == 4);
  job.config().parallel.shard = 5;
  CHECK_THROWS_AS(best_layouts(job), InputError);
  job.config().parallel.shard = -1;
  job.batch.tokens = 65536;
  const Layouts of_long_rows = best_layouts(job, 100);
  CHECK(std::ranges::any_of(of_long_rows.best, [](const Layout& each) { return each.mesh.context == 6; }));
}

TEST_CASE("layouts: a global batch size stays, and the micro-batches that follow from it are no switch", "[train]") {
  Job job = job_of("llama3.1-8b", {4, 4}, {.rows = 4, .tokens = 2048});
  job.model.layers = 2;
  job.config().training.global_batch_size = 32;
  job.config().training.accumulation_steps = 2;  // as for_world() sets it
  const Layouts layouts = best_layouts(job, 100);
  CHECK(std::ranges::any_of(layouts.best, [](const Layout& each) { return each.mesh.context == 2; }));
  for (const Layout& each : layouts.best) CHECK_FALSE(says(each, "accumulation_steps"));
}

TEST_CASE("layouts: shards in host memory are no reason to leave a layout out", "[train]") {
  Job job = job_of("llama3.1-8b", {2, 2}, {.rows = 1, .tokens = 512});
  job.config().parallel.offload = true;
  job.hardware.memory = 30'000'000'000;  // less than the float32 parameters that each rank has with no_shard
  const Layouts layouts = best_layouts(job, 100);
  CHECK(layouts.tried > 3);
  CHECK(std::ranges::any_of(layouts.best, [](const Layout& each) { return each.mesh.context == 2; }));
}

TEST_CASE("layouts: rows of a model that has no context dimension are not split", "[train]") {
  const Job job = job_of("t5-small", {8, 8}, {.rows = 4, .tokens = 128, .source = 512});
  for (const Layout& layout : best_layouts(job, 100).best) CHECK(layout.mesh.context == 1);
}

}  // namespace trainyard::train
