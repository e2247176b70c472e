#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <set>

#include "config/check.h"
#include "config/schema.h"
#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {
using config::Config;
using config::Strategy;

// The sections and keys of torchtitan v0.2.2's own files for training, with values for a small run.
constexpr const char* kSmall = R"([job]
dump_folder = "./small"
description = "a small run"
print_config = false

[profiling]
enable_profiling = false
save_traces_folder = "traces"
profile_freq = 5
enable_memory_snapshot = false
save_memory_snapshot_folder = "snapshots"

[metrics]
log_freq = 2
disable_color_printing = true
enable_tensorboard = false
save_tb_folder = "tb"
enable_wandb = false

[model]
name = "qwen3"
flavor = "0.6B"
hf_assets_path = "./assets/Qwen3-0.6B"
# converters = ["float8"]

[optimizer]
name = "AdamW"
lr = 4e-4
eps = 1e-8

[lr_scheduler]
warmup_steps = 4
decay_ratio = 0.5
decay_type = "sqrt"
min_lr_factor = 0.1

[training]
local_batch_size = 2
global_batch_size = 16
seq_len = 128
max_norm = 0.5
steps = 20
dataset = "c4_test"

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
fsdp_reshard_after_forward = "never"
tensor_parallel_degree = 1
enable_async_tensor_parallel = false
pipeline_parallel_degree = 1
pipeline_parallel_schedule = "1F1B"
context_parallel_degree = 1

[checkpoint]
enable = true
folder = "checkpoint"
interval = 5
last_save_model_only = false
export_dtype = "float32"
async_mode = "disabled"
keep_latest_k = 0

[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"

[compile]
enable = false
components = ["model", "loss"]

[quantize.linear.float8]
enable_fsdp_float8_all_gather = false
precompute_float8_dynamic_scale_for_fsdp = false
filter_fqns = ["output"]

[validation]
enable = false
dataset = "c4_validation"
freq = 5
steps = 10
)";

TEST_CASE("torchtitan: each key of its files becomes ours", "[dialects]") {
  Files files;
  const config::Loaded loaded = load_file(files, "small.toml", kSmall);
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

// Every key of v0.2.2 that has a default, with that.
constexpr const char* kDefaults = R"([job]
dump_folder = "./outputs"
description = "default job"
print_config = false
custom_config_module = ""
[profiling]
enable_profiling = false
save_traces_folder = "profile_traces"
profile_freq = 10
profiler_active = 1
profiler_warmup = 3
enable_memory_snapshot = false
save_memory_snapshot_folder = "memory_snapshot"
[metrics]
log_freq = 10
enable_tensorboard = false
disable_color_printing = false
save_tb_folder = "tb"
save_for_all_ranks = false
enable_wandb = false
[model]
name = "llama3"
flavor = "debugmodel"
hf_assets_path = "./tests/assets/tokenizer"
converters = []
print_after_conversion = false
[optimizer]
name = "AdamW"
lr = 0.0008
beta1 = 0.9
beta2 = 0.95
eps = 1e-08
weight_decay = 0.1
implementation = "fused"
early_step_in_backward = false
[lr_scheduler]
warmup_steps = 200
decay_type = "linear"
min_lr_factor = 0.0
[training]
dataset = "c4_test"
local_batch_size = 8
global_batch_size = -1
seq_len = 2048
max_norm = 1.0
steps = 10000
enable_cpu_offload = false
dtype = "float32"
mixed_precision_param = "bfloat16"
mixed_precision_reduce = "float32"
gc_freq = 50
gc_debug = false
[training.dataloader]
num_workers = 0
persistent_workers = false
pin_memory = false
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
fsdp_reshard_after_forward = "default"
tensor_parallel_degree = 1
disable_loss_parallel = false
enable_async_tensor_parallel = false
pipeline_parallel_degree = 1
pipeline_parallel_first_stage_less_layers = 1
pipeline_parallel_last_stage_less_layers = 1
pipeline_parallel_schedule = "1F1B"
pipeline_parallel_schedule_csv = ""
pipeline_parallel_microbatch_size = 1
pipeline_parallel_expert_parallel_overlap = true
context_parallel_degree = 1
context_parallel_load_balancer = "headtail"
context_parallel_rotate_method = "allgather"
expert_parallel_degree = 1
expert_tensor_parallel_degree = 1
expert_parallel_comm_backend = "standard"
[checkpoint]
enable = false
enable_ft_dataloader_checkpoints = true
folder = "checkpoint"
interval = 500
initial_load_model_only = true
initial_load_in_hf = false
initial_load_in_hf_quantized = false
last_save_model_only = true
last_save_in_hf = false
export_dtype = "float32"
async_mode = "disabled"
keep_latest_k = 10
load_step = -1
exclude_from_loading = []
enable_first_step_checkpoint = false
create_seed_checkpoint = false
load_only = false
[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"
per_op_sac_force_recompute_mm_shapes_by_fqns = ["moe.router.gate"]
early_stop = false
memory_budget = 0.5
visualize_memory_budget_pareto = false
preserve_rng_state = true
determinism_check = "default"
debug = false
[compile]
enable = false
components = ["model", "loss"]
backend = "inductor"
[quantize.linear.float8]
enable_fsdp_float8_all_gather = false
precompute_float8_dynamic_scale_for_fsdp = false
filter_fqns = []
emulate = false
[quantize.linear.mx]
mxfp8_dim1_cast_kernel_choice = "triton"
recipe_name = "mxfp8_cublas"
filter_fqns = ["output"]
[quantize.grouped_mm.float8]
fqns = []
[quantize.grouped_mm.mx]
recipe_name = "mxfp8"
fqns = []
[comm]
init_timeout_seconds = 300
train_timeout_seconds = 100
trace_buf_size = 20000
save_traces_folder = "comm_traces"
save_traces_file_prefix = "rank_"
mode = "default"
[memory_estimation]
enable = false
disable_fake_mode = false
[fault_tolerance]
enable = false
process_group = "gloo"
process_group_timeout_ms = 10000
replica_id = 0
group_size = 0
min_replica_size = 1
[experimental]
custom_import = ""
custom_args_module = ""
[validation]
enable = false
dataset = "c4_validation"
local_batch_size = 8
seq_len = 2048
freq = 10
steps = -1
[validation.dataloader]
num_workers = 0
persistent_workers = false
pin_memory = false
[debug]
deterministic = false
deterministic_warn_only = false
moe_force_load_balance = false
)";

TEST_CASE("torchtitan: all its keys are known, and to spell out its defaults changes nothing", "[dialects]") {
  Files files;
  const config::Loaded silent = load_file(files, "silent.toml", "");
  const config::Loaded spelt = load_file(files, "spelt.toml", kDefaults);
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
  const std::string path = files.add("small.toml", kSmall);
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

TEST_CASE("torchtitan: replicate and shard degrees make its strategies", "[dialects]") {
  struct Case {
    const char* keys;
    Strategy strategy;
    int64_t replicate, shard;
  };
  const int64_t unsaid = Config{}.parallel.replicate;
  const std::vector<Case> cases{
      {"data_parallel_shard_degree = 4", Strategy::FullShard, unsaid, 4},
      {"data_parallel_replicate_degree = 2", Strategy::HybridShard, 2, -1},
      {"data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\nfsdp_reshard_after_forward = \"never\"",
       Strategy::HybridShardZero2, 2, 4},
      {"data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1", Strategy::NoShard, unsaid, -1},
  };
  for (const Case& each : cases) {
    INFO(each.keys);
    Files files;
    const Config config = load_file(files, "a.toml", fmt::format("[parallelism]\n{}\n", each.keys)).config;
    CHECK(config.parallel.strategy == each.strategy);
    CHECK(config.parallel.replicate == each.replicate);
    CHECK(config.parallel.shard == each.shard);
  }
}

TEST_CASE("torchtitan: validation, traces and event files are asked for where they are enabled", "[dialects]") {
  Files files;
  const std::string keys = R"([metrics]
enable_tensorboard = {0}
save_tb_folder = "events"
[validation]
enable = {0}
dataset = "c4_validation"
dataset_path = "held-out.txt"
freq = 7
steps = -1
[profiling]
enable_profiling = {0}
profile_freq = 5
profiler_active = 2
)";
  const auto with = [&](const char* truth) {
    return load_file(files, "a.toml", fmt::format(fmt::runtime(keys), truth)).config;
  };
  const Config on = with("true"), off = with("false");
  CHECK(on.metrics.tensorboard == "./outputs/events");
  CHECK(on.metrics.profile_interval == 5);
  CHECK(on.metrics.profile_steps == 2);
  CHECK(on.validation.path == "held-out.txt");
  CHECK(on.validation.interval == 7);
  CHECK(on.validation.steps == 0);
  CHECK(on.validation.batch_size == 8);
  CHECK(off.metrics.tensorboard.empty());
  CHECK(off.metrics.profile_interval == 0);
  CHECK(off.validation.path.empty());
  CHECK(off.validation.interval == 0);
  CHECK_THAT(error_of_file("a.toml", "[validation]\nenable = true\nseq_len = 64\n"),
             Catch::StartsWith("a.toml:3: validation.seq_len is 64, but training.seq_len is 2048"));
}

TEST_CASE("torchtitan: what is loaded and what the last save holds", "[dialects]") {
  const auto with = [](const std::string& keys) {
    Files files;
    return load_file(files, "a.toml", "[checkpoint]\n" + keys).config;
  };
  CHECK(with("").checkpoint.final_model_only);
  CHECK_FALSE(with("last_save_model_only = false").checkpoint.final_model_only);
  CHECK(with("last_save_in_hf = true").checkpoint.final_state_dict == config::FinalStateDict::Full);
  CHECK(with("exclude_from_loading = [\"lr_scheduler\", \"train_state\", \"dataloader\"]").checkpoint.exclude ==
        "progress,data");
  const Config other = with("initial_load_path = \"there/step-5\"");
  CHECK(other.checkpoint.initial_load_path == "there/step-5");
  CHECK(other.checkpoint.initial_load_model_only);
  const Config whole = with("initial_load_path = \"there/step-5\"\ninitial_load_model_only = false");
  CHECK_FALSE(whole.checkpoint.initial_load_model_only);
  const Config weights = with("initial_load_path = \"Llama\"\ninitial_load_in_hf = true");
  CHECK(weights.model.init_from == "Llama");
  CHECK(weights.model.preset.empty());
  CHECK(weights.checkpoint.initial_load_path.empty());
  CHECK(
      error_of_file("a.toml", "[checkpoint]\nexclude_from_loading = [\"model\"]\n") ==
      "a.toml:2: checkpoint.exclude_from_loading names 'model'; use optimizer, lr_scheduler, dataloader, train_state");
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
  CHECK(config.training.batch_size == 1);
  CHECK(config.training.steps == 300);
  CHECK(config.training.sequence_length == 4096);
  CHECK(config.checkpoint.enabled);
  CHECK(config.checkpoint.interval == 100);
  CHECK(config.checkpoint.resume == "./checkpoints/step_100");
  CHECK(config.activation_checkpointing.mode == config::CheckpointingMode::Full);
  CHECK(config.optimizer.warmup_steps == 200);
}

TEST_CASE("torchtitan: what is not offered is refused by key, all of it in one line", "[dialects]") {
  struct Case {
    const char* toml;
    const char* message;
  };
  const std::vector<Case> cases{
      {"[parallelism]\ntensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n",
       "a.toml:2: parallelism.tensor_parallel_degree is 8: tensor parallelism is not offered; use 1, and more ranks in "
       "data_parallel_*; refused besides: parallelism.enable_async_tensor_parallel"},
      {"[parallelism]\npipeline_parallel_degree = 2\n",
       "a.toml:2: parallelism.pipeline_parallel_degree is 2: pipeline parallelism is not offered; use 1"},
      {"[parallelism]\ncontext_parallel_degree = 2\n",
       "a.toml:2: parallelism.context_parallel_degree is 2: context parallelism is not offered; use 1"},
      {"[model]\nconverters = [\"float8\"]\n",
       "a.toml:2: model.converters is [float8]: training in 8 bits is not offered; leave it out"},
      {"[training]\nlocal_batch_sise = 3\n",
       "a.toml:2: unknown key training.local_batch_sise of torchtitan; did you mean training.local_batch_size?"},
      {"[tranining]\n",
       "a.toml:1: unknown key tranining of torchtitan; docs/coming-from-pytorch.md lists those that "
       "are known"},
      {"[training]\nsteps = 3\nsteps = 4\n",
       "a.toml:3:9: malformed TOML: Error while parsing key-value pair: cannot redefine existing integer 'steps'"},
      {"[training]\nsteps = 3 \xC3\xA9\n",
       "a.toml:2:11: malformed TOML: Error while parsing key-value pair: expected a comment or whitespace, saw"},
      {"[model]\nflavor = \"9B\"\n", "a.toml:2: model.name llama3 with model.flavor 9B is no model here; known are"},
      {"[training]\nlocal_batch_size = 2\nbatch_size = 3\n",
       "a.toml:3: training.batch_size 3 contradicts training.local_batch_size 2 (a.toml:2): training.batch_size would "
       "be 2 and 3; keep one"},
      {"[lr_scheduler]\ndecay_ratio = 2.0\n",
       "a.toml:2: lr_scheduler.decay_ratio is '2'; it must be a number, at least 0 and at most 1"},
      {"[lr_scheduler]\ntotal_steps = 5\n",
       "a.toml:2: lr_scheduler.total_steps is 5, but the schedule ends with training.steps, which is 10000; leave it "
       "out, or stop early with SIGTERM"},
      {"[training]\nsteps = \"many\"\n",
       "a.toml:2: training.steps (training.steps) is 'many'; it must be a whole number"},
  };
  for (const Case& each : cases) {
    INFO(each.toml);
    CHECK_THAT(error_of_file("a.toml", each.toml), Catch::StartsWith(each.message));
  }
}

TEST_CASE("torchtitan: two of its files are one too many", "[dialects]") {
  CHECK(config::error_of([] {
          load({"--config", "a.toml", "--job.config_file=b.toml"});
        }) == "a.toml and b.toml are two TOML files; give one");
}

}  // namespace
}  // namespace trainyard::dialects
