// The keys of torchtitan's files and flags, and which of ours they become.
#include <catch2/catch.hpp>

#include <set>

#include "base/files.h"
#include "config/check.h"
#include "config/schema.h"
#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {

using config::Config;
using config::Strategy;

/// The sections and keys of torchtitan v0.2.2's own files for training, with values for a small run.
std::string small() {
  return read_file(test::in_repository("tests/unit/dialects/torchtitan_small.toml"));
}

/// Every key of v0.2.2 that has a default, with that.
std::string defaults() {
  return read_file(test::in_repository("tests/unit/dialects/torchtitan_defaults.toml"));
}

TEST_CASE("torchtitan: each key of its files becomes ours", "[dialects]") {
  Files files;
  const config::Loaded loaded = load_file(files, "small.toml", small());
  const Config& config = loaded.config;
  CHECK(config.model.preset == "qwen3-0.6b");
  CHECK(config.data.tokenizer == "./assets/Qwen3-0.6B");
  CHECK(config.data.path == "tests/assets/c4_test");
  CHECK(config.training.batch_size == 2);
  CHECK(config.training.sequence_length == 128);
  CHECK(config.training.clip_grad_norm == 0.5);
  CHECK(config.training.steps == 20);
  CHECK(config.optimizer.lr == 4e-4);
  CHECK(config.optimizer.warmup_steps == 4);
  CHECK(config.optimizer.stable_steps == 6);  // 20 steps, of which the last 10 decay
  CHECK(config.optimizer.decay == config::Decay::Sqrt);
  CHECK(config.optimizer.decayed_parameters == config::DecayedParameters::All);
  CHECK(config.optimizer.min_lr_ratio == 0.1);
  CHECK(config.parallel.strategy == Strategy::ShardGradOp);
  CHECK(config.checkpoint.enabled);
  CHECK(config.checkpoint.dir == "./small/checkpoint");
  CHECK(config.checkpoint.keep == 1'000'000);
  CHECK(config.activation_checkpointing.mode == config::CheckpointingMode::EveryN);
  CHECK(config.activation_checkpointing.n == 2);
  CHECK(config.metrics.interval == 2);
  CHECK(files.relative(loaded.origin("optimizer.stable_steps")) == "small.toml:33 (lr_scheduler.decay_ratio)");
  CHECK(config::for_world(loaded, 4).config.training.accumulation_steps == 2);
  CHECK(files.relative(config::error_of([&] { config::for_world(loaded, 3); })) ==
        "small.toml:39 (training.global_batch_size): training.global_batch_size is 16, but training.batch_size 2 on 3 "
        "ranks makes 6 rows at once; use a multiple of 6");
}

TEST_CASE("torchtitan: all its keys are known, and to spell out its defaults changes nothing", "[dialects]") {
  Files files;
  const config::Loaded silent = load_file(files, "silent.toml", "[debug]\ndeterministic = true\n");  // so 0.2.2
  const config::Loaded spelt = load_file(files, "spelt.toml", defaults());
  // The data to train on is for each to say; ours are kept of what bears no meaning for results.
  const std::set<std::string> others{"data.path", "training.deterministic", "parallel.replicate", "comm.timeout",
                                     "rendezvous.timeout"};
  for (const config::Key& key : config::keys()) {
    INFO(key.full_name() << " from " << spelt.origin(key.full_name()));
    CHECK((others.contains(key.full_name()) || key.get(spelt.config) == key.get(silent.config)));
  }
  const std::vector<const char*> without_default{
      "[checkpoint]\ninitial_load_path = \"x\"\ninitial_load_model_only = false",
      "[job]\nconfig_file = \"x\"\nsave_config_file = \"x\"",
      "[training.dataloader]\nprefetch_factor = 2",
      "[fault_tolerance]\nsemi_sync_method = \"x\"",
      "[parallelism]\npipeline_parallel_layers_per_stage = 2",
      "[validation.dataloader]\nprefetch_factor = 2",
      "[quantize.linear.float8]\nrecipe_name = \"rowwise\""};
  for (const char* const toml : without_default) CHECK_NOTHROW(load_file(files, "more.toml", toml));
}

TEST_CASE("torchtitan: float8 is asked for by a converter, and its layers have our names", "[dialects]") {
  Files files;
  const auto of = [&](const std::string& toml) { return load_file(files, "float8.toml", toml).config.float8; };
  using config::Float8Recipe;
  const std::string section =
      "[quantize.linear.float8]\nenable_fsdp_float8_all_gather = true\n"
      "precompute_float8_dynamic_scale_for_fsdp = true\n"
      "filter_fqns = [\"output\", \"attention.wk\", \"layers.0.feed_forward\", \"router.gate\"]\n";
  const config::Float8 converted = of("[model]\nconverters = [\"quantize.linear.float8\"]\n" + section);
  CHECK(converted.recipe == Float8Recipe::Tensorwise);
  CHECK(converted.all_gather);
  CHECK(converted.filter_fqns == "self_attn.k_proj,layers.0.mlp");
  const config::Float8 not_asked = of(section);
  CHECK(not_asked.recipe == Float8Recipe::None);
  CHECK_FALSE(not_asked.all_gather);
  CHECK(not_asked.filter_fqns.empty());
  CHECK(of("[model]\nconverters = [\"quantize.linear.float8\"]\n[quantize.linear.float8]\nrecipe_name = "
           "\"rowwise_with_gw_hp\"\n")
            .recipe == Float8Recipe::RowwiseWithGwHp);
  CHECK(of("[model]\nconverters = [\"float8\"]\n[float8]\nrecipe_name = \"rowwise\"\n").recipe ==
        Float8Recipe::Rowwise);
  CHECK(of("[float8]\nenable_float8_linear = true\n").recipe == Float8Recipe::Tensorwise);
}

TEST_CASE("torchtitan: what its file leaves out is as torchtitan has it", "[dialects]") {
  Files files;
  const config::Loaded loaded = load_file(files, "empty.toml", "[training]\n");
  CHECK(loaded.config.optimizer.lr == 8e-4);
  CHECK(loaded.config.optimizer.warmup_steps == 200);
  CHECK(loaded.config.optimizer.decay == config::Decay::Linear);
  CHECK(loaded.config.optimizer.min_lr_ratio == 0);
  CHECK(loaded.config.training.steps == 10000);
  CHECK(loaded.config.parallel.param_dtype == config::Precision::BFloat16);
  CHECK_FALSE(loaded.config.checkpoint.enabled);
  CHECK(loaded.origin("optimizer.lr") == "default of torchtitan (optimizer.lr)");
}

TEST_CASE("torchtitan: flags by its names override the file, and those of ours are ours", "[dialects]") {
  Files files;
  const std::string path = files.add("small.toml", small());
  const Config config =
      load({"--job.config_file", path, "--training.steps", "10", "--parallelism.fsdp-reshard-after-forward=always",
            "--checkpoint.no_enable", "--lr_scheduler.decay_ratio", "0.2", "--metrics.dir", "here", "--compile.enable",
            "--optimizer.betas", "0.8,0.9"})
          .config;
  CHECK(config.training.steps == 10);
  CHECK(config.optimizer.stable_steps == 4);  // follows the steps of the flag
  CHECK(config.parallel.strategy == Strategy::FullShard);
  CHECK_FALSE(config.checkpoint.enabled);
  CHECK(config.metrics.dir == "here");
  CHECK(config.optimizer.betas == std::vector<double>{0.8, 0.9});
}

TEST_CASE("torchtitan: older names and those of guides mean the same, in whatever section", "[dialects]") {
  Files files;
  const Config config = load_file(files, "guide.toml", R"(activation_checkpoint = "full"
[model]
name = "llama3"
flavor = "8B"
norm_type = "rmsnorm"
tokenizer_path = "./tokenizer"
[training]
micro_batch_size = 1
max_steps = 300
sequence_length = 4096
compile = true
compile_mode = "max-autotune"
tensor_parallel_degree = 1
[checkpoint]
enable_checkpoint = true
checkpoint_interval = 100
resume_from_checkpoint = "./checkpoints/step_100"
[metrics]
wandb_project = "mine"
)")
                            .config;
  CHECK(config.model.preset == "llama3.1-8b");
  CHECK(config.data.tokenizer == "./tokenizer");
  CHECK(config.device.cuda_graphs == config::CudaGraphs::Auto);
  CHECK(config.training.batch_size == 1);
  CHECK(config.training.steps == 300);
  CHECK(config.training.sequence_length == 4096);
  CHECK(config.checkpoint.enabled);
  CHECK(config.checkpoint.interval == 100);
  CHECK(config.checkpoint.resume == "./checkpoints/step_100");
  CHECK(config.activation_checkpointing.mode == config::CheckpointingMode::Full);
  CHECK(config.optimizer.warmup_steps == 200);
}

}  // namespace
}  // namespace trainyard::dialects
