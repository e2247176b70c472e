#include <catch2/catch.hpp>

#include <algorithm>

#include "config/check.h"
#include "config/details.h"
#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {
using config::Config;
using config::Decay;
using config::Precision;
using config::Strategy;
using Lines = std::vector<std::string>;

/// As people write it beside the Trainer: all is "auto" but the stage.
constexpr const char* kAuto = R"({
    "bf16": {"enabled": "auto"},
    "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 500, "initial_scale_power": 12, "hysteresis": 2,
             "min_loss_scale": 1},
    "optimizer": {"type": "AdamW",
                  "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupLR",
                  "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu", "pin_memory": true},
        "overlap_comm": true,
        "contiguous_gradients": true,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_gather_16bit_weights_on_model_save": true
    },
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "steps_per_print": 2000,
    "wall_clock_breakdown": false
})";

bool has_line(const Lines& lines, const std::string& line) {
  return std::ranges::find(lines, line) != lines.end();
}

Config config_of(const std::string& json, const std::vector<std::string>& more = {}) {
  Files files;
  return load_file(files, "ds.json", json, more).config;
}

TEST_CASE("DeepSpeed: a json is known by its keys, and --deepspeed names it as in the Trainer", "[dialects]") {
  Files files;
  const std::string path = files.add("ds.json", R"({"zero_optimization": {"stage": 3}, "gradient_clipping": 0.5})");
  const std::vector<std::vector<std::string>> ways{{"--config", path},
                                                   {"--deepspeed", path},
                                                   {"--deepspeed=" + path},
                                                   {"--deepspeed", "--deepspeed_config", path},
                                                   {"--deepspeed_config_file", path},
                                                   {"--deepspeed-config", path, "--max_steps", "3"},
                                                   {"--deepspeed", R"({"zero_optimization": {"stage": 3},
                                                                       "gradient_clipping": 0.5})"}};
  for (const auto& way : ways) {
    INFO(way.front());
    const Config config = load(way).config;
    CHECK(config.parallel.strategy == Strategy::FullShard);
    CHECK(config.training.clip_grad_norm == 0.5);
  }
  CHECK(names_file({"--deepspeed", path}));
  CHECK(load({"--deepspeed", path}).texts.at(0).name == path);
  CHECK(load({"--deepspeed", ""}).config.optimizer.lr == Config{}.optimizer.lr);
  CHECK(config::error_of([] {
          load({"--deepspeed", "--max_steps", "3"});
        }) == "--deepspeed needs its json after it, or --deepspeed_config FILE");
}

TEST_CASE("DeepSpeed: stages are strategies, and hpZ and MiCS are sizes of them", "[dialects]") {
  const auto parallel = [](const std::string& zero) {
    return config_of("{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {" + zero + "}}").parallel;
  };
  CHECK(parallel("").strategy == Strategy::NoShard);
  CHECK(parallel("\"stage\": 0").strategy == Strategy::NoShard);
  CHECK(parallel("\"stage\": 1").strategy == Strategy::ShardGradOp);
  CHECK(parallel("\"stage\": 2").strategy == Strategy::ShardGradOp);
  CHECK(parallel("\"stage\": 3").strategy == Strategy::FullShard);
  CHECK(parallel("\"stage\": 3, \"zero_hpz_partition_size\": 4").reshard_after_forward == "4");
  CHECK(parallel("\"stage\": 3, \"zero_hpz_partition_size\": 1").reshard_after_forward.empty());
  CHECK(parallel("\"stage\": 3, \"mics_shard_size\": 4").strategy == Strategy::HybridShard);
  CHECK(parallel("\"stage\": 3, \"mics_shard_size\": 4").shard == 4);
  CHECK(parallel("\"stage\": 3, \"mics_shard_size\": -1").shard == -1);
  CHECK(parallel("\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}").offload);
  CHECK(parallel("\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}").offload);
  CHECK(parallel("\"stage\": 2, \"cpu_offload\": true").offload);
  CHECK_FALSE(parallel("\"stage\": 3, \"offload_param\": {\"device\": \"none\"}").offload);
  CHECK(config_of("{\"gradient_clipping\": 1.0}").parallel.strategy == Strategy::NoShard);
  CHECK(config_of("{\"gradient_clipping\": 1.0}", {"--parallel.strategy=full_shard"}).parallel.strategy ==
        Strategy::FullShard);
  Files files;
  CHECK(files.relative(
            load_file(files, "a.json", R"({"zero_optimization": {"stage": 2, "zero_hpz_partition_size": 4}})").notes) ==
        Lines{"a.json:1: zero_optimization.zero_hpz_partition_size 4 changes nothing: it is for stage 3"});
}

TEST_CASE("DeepSpeed: auto is what the Trainer's flags say, and else the Trainer's default", "[dialects]") {
  Files files;
  const std::string path = files.add("ds.json", kAuto);
  const config::Loaded given = load({"--deepspeed",
                                     path,
                                     "--per_device_train_batch_size",
                                     "2",
                                     "--gradient_accumulation_steps",
                                     "4",
                                     "--learning_rate",
                                     "1e-4",
                                     "--adam_beta2",
                                     "0.98",
                                     "--weight_decay",
                                     "0.1",
                                     "--warmup_steps",
                                     "7",
                                     "--max_grad_norm",
                                     "0.3",
                                     "--max_steps",
                                     "20",
                                     "--bf16",
                                     "true"});
  const Config& config = given.config;
  CHECK(config.training.batch_size == 2);
  CHECK(config.training.accumulation_steps == 4);
  CHECK(config.training.clip_grad_norm == 0.3);
  CHECK(config.optimizer.lr == 1e-4);
  CHECK(config.optimizer.betas == std::vector<double>{0.9, 0.98});
  CHECK(config.optimizer.weight_decay == 0.1);
  CHECK(config.optimizer.decayed_parameters == config::DecayedParameters::All);
  CHECK(config.optimizer.warmup_steps == 7);
  CHECK(config.optimizer.decay == Decay::Constant);
  CHECK(config.optimizer.warmup_shape == config::WarmupShape::Logarithm);
  CHECK(config.optimizer.schedule_lags);
  CHECK(config.parallel.param_dtype == Precision::BFloat16);
  CHECK(config.parallel.offload);
  CHECK(config.checkpoint.final_state_dict == config::FinalStateDict::Full);
  CHECK(config.metrics.interval == Config{}.metrics.interval);  // the Trainer turns steps_per_print off
  CHECK(config::error_of([&] { config::check_details(given); }) == "no error");
  const Lines became = files.relative(given.became);
  CHECK(has_line(became, "optimizer.params.lr: auto → optimizer.lr 0.0001 (--learning_rate, ds.json:6)"));
  CHECK(has_line(became, "zero_optimization.stage: 3 → parallel.strategy full_shard (ds.json:10)"));
  CHECK(
      files.relative(given.notes) ==
      Lines{"ds.json:22: steps_per_print 2000 changes nothing: the Trainer and Accelerate, which fill in what is auto, "
            "turn it off; --logging_steps says it",
            "ds.json:11: what tunes speed and memory alone changes nothing here: "
            "zero_optimization.offload_optimizer.pin_memory, zero_optimization.overlap_comm, "
            "zero_optimization.contiguous_gradients, zero_optimization.reduce_bucket_size, "
            "zero_optimization.stage3_prefetch_bucket_size"});

  const Config bare = load({"--deepspeed", path}).config;
  CHECK(bare.training.batch_size == 8);
  CHECK(bare.training.accumulation_steps == 1);
  CHECK(bare.training.epochs == 3);
  CHECK(bare.optimizer.lr == 5e-5);
  CHECK(bare.optimizer.weight_decay == 0);
  CHECK(bare.parallel.param_dtype == Precision::Float32);
  const Config half = load({"--deepspeed", path, "--fp16"}).config;
  CHECK(half.parallel.param_dtype == Precision::Float16);
  CHECK(half.training.loss_scale == "auto");
  CHECK(half.training.loss_scale_init == 4096);
  CHECK(half.training.loss_scale_growth_interval == 500);
  const std::string ours = files.add("ours.yaml", "optimizer: {lr: 3e-3}\n");
  const config::Loaded beside = load({"--config", ours, "--config", path});
  CHECK(beside.config.optimizer.lr == 3e-3);
  CHECK(has_line(files.relative(beside.became),
                 "optimizer.params.lr: auto → optimizer.lr 0.003 (ours.yaml:1, ds.json:6)"));
}

TEST_CASE("DeepSpeed: what the json says and flags say otherwise is refused, all of it at once", "[dialects]") {
  Files files;
  const std::string path = files.add("ds.json", R"({"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1.0,
"optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95]}}, "bf16": {"enabled": true}})");
  const auto error = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--deepspeed", path});
    return files.relative(config::error_of([&] { load(flags); }));
  };
  CHECK(error({"--per_device_train_batch_size", "2", "--learning_rate", "1e-4"}) ==
        "ds.json:1 (train_micro_batch_size_per_gpu) is 4 and --per_device_train_batch_size 2; ds.json:2 "
        "(optimizer.params.lr) is 0.0003 and --learning_rate 0.0001; write \"auto\" there, or leave the flags out");
  CHECK(error({"--fp16"}) ==
        "ds.json:2 (bf16.enabled) is bf16 and --fp16 fp16; write \"auto\" there, or leave the flag out");
  const std::string off = files.add("off.json", R"({"bf16": {"enabled": false}, "gradient_clipping": 1})");
  CHECK(files.relative(config::error_of([&] {
    load({"--deepspeed", off, "--bf16", "1"});
  })) == "off.json:1 (bf16.enabled) is false and --bf16 true; write \"auto\" there, or leave the flag out");
  const std::string sharded = files.add("two.json", R"({"zero_optimization": {"stage": 2}})");
  CHECK(
      files.relative(config::error_of([&] {
        load({"--deepspeed", sharded, "--fsdp", "full_shard"});
      })) ==
      "two.json:1 (zero_optimization.stage) is shard_grad_op and --fsdp full_shard; write \"auto\" there, or leave the "
      "flag out");
  CHECK(error({"--per_device_train_batch_size", "4", "--learning_rate", "3e-4", "--adam_beta2", "0.95"}) == "no error");
  CHECK(load({"--deepspeed", path, "--optimizer.lr", "1e-2"}).config.optimizer.lr == 1e-2);  // ours win over any file
}

TEST_CASE("DeepSpeed: of the three batch sizes two give the third", "[dialects]") {
  const auto training = [](const std::string& keys, int world, const std::vector<std::string>& more = {}) {
    Files files;
    const config::Loaded loaded = load_file(files, "ds.json", "{\"zero_optimization\": {}, " + keys + "}", more);
    return config::for_world(loaded, world).config.training;
  };
  const auto is = [](const config::Training& found, int64_t rows, int64_t steps) {
    return found.batch_size == rows && found.accumulation_steps == steps;
  };
  CHECK(is(training(R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": 4)", 4), 4, 4));
  CHECK(is(training(R"("train_batch_size": 64, "gradient_accumulation_steps": 2)", 4), 8, 2));
  CHECK(is(training(R"("train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2)", 4), 4, 2));
  CHECK(is(training(R"("train_batch_size": 64)", 4), 16, 1));
  CHECK(is(training(R"("train_batch_size": 64)", 4, {"--num_train_epochs", "1"}), 16, 1));
  CHECK(is(training(R"("train_micro_batch_size_per_gpu": 4)", 4), 4, 1));
  CHECK(is(
      training(R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2)", 4),
      4, 2));
  CHECK(is(training(R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": "auto",
                       "gradient_accumulation_steps": "auto")",
                    4, {"--per_device_train_batch_size", "2"}),
           2, 4));
  CHECK(config::error_of([&] {
          training(R"("train_batch_size": 65, "train_micro_batch_size_per_gpu": 4)", 4);
        }).find("train_batch_size") != std::string::npos);
  Files files;
  const config::Loaded loaded = load_file(files, "ds.json", R"({"train_batch_size": 64,
"train_micro_batch_size_per_gpu": 4,
"gradient_accumulation_steps": 2})");
  CHECK(files.relative(config::error_of([&] { config::for_world(loaded, 4); })) ==
        "ds.json:1 (train_batch_size): training.global_batch_size is 64, but training.batch_size 4 (ds.json:2 "
        "(train_micro_batch_size_per_gpu)) with training.accumulation_steps 2 (ds.json:3 "
        "(gradient_accumulation_steps)) on 4 ranks makes 32; leave one out");
}

TEST_CASE("DeepSpeed: an optimizer is AdamW, with DeepSpeed's defaults where it leaves something out", "[dialects]") {
  const auto optimizer = [](const std::string& json, const std::vector<std::string>& more = {}) {
    return config_of("{\"gradient_clipping\": 1, \"optimizer\": " + json + "}", more).optimizer;
  };
  const config::Optimizer bare = optimizer(R"({"type": "Adam"})");
  CHECK(bare.lr == 1e-3);
  CHECK(bare.betas == std::vector<double>{0.9, 0.999});
  CHECK(bare.weight_decay == 0);
  CHECK(optimizer(R"({"type": "AdamW", "params": {"torch_adam": true}})").weight_decay == 0.01);
  const config::Optimizer given =
      optimizer(R"({"type": "adamw", "params": {"lr": 2e-5, "betas": [0.8, 0.9], "eps": 1e-7, "weight_decay": 3e-7,
                    "adam_w_mode": false}})");
  CHECK(given.lr == 2e-5);
  CHECK(given.betas == std::vector<double>{0.8, 0.9});
  CHECK(given.eps == 1e-7);
  CHECK(given.weight_decay == 3e-7);
  CHECK(given.decayed_parameters == config::DecayedParameters::All);
  CHECK(optimizer(R"({"type": "AdamW"})", {"--optimizer.decayed_parameters=matrices", "--learning_rate=1"}).lr == 1);
}

TEST_CASE("DeepSpeed: schedulers have its rates, of which a logarithmic warm-up is the default", "[dialects]") {
  const auto optimizer = [](const std::string& json) {
    return config_of(
               "{\"gradient_clipping\": 1, \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.01}}, "
               "\"scheduler\": " +
                   json + "}",
               {"--max_steps", "50"})
        .optimizer;
  };
  const config::Optimizer warm = optimizer(R"({"type": "WarmupLR"})");
  CHECK(warm.decay == Decay::Constant);
  CHECK(warm.warmup_steps == 1000);
  CHECK(warm.warmup_shape == config::WarmupShape::Logarithm);
  CHECK(warm.schedule_lags);
  CHECK(warm.lr == 0.01);
  const config::Optimizer decaying =
      optimizer(R"({"type": "WarmupDecayLR", "params": {"total_num_steps": 50, "warmup_min_lr": 0.001,
                    "warmup_max_lr": 0.004, "warmup_num_steps": 10, "warmup_type": "linear"}})");
  CHECK(decaying.decay == Decay::Linear);
  CHECK(decaying.min_lr_ratio == 0);
  CHECK(decaying.lr == 0.004);
  CHECK(decaying.warmup_min_ratio == 0.25);
  CHECK(decaying.warmup_steps == 10);
  CHECK(decaying.warmup_shape == config::WarmupShape::Linear);
  CHECK(decaying.warmup_from_zero);
  CHECK(optimizer(R"({"type": "WarmupDecayLR", "params": {"total_num_steps": "auto"}})").lr == 0.001);
  const config::Optimizer cosine = optimizer(
      R"({"type": "WarmupCosineLR", "params": {"total_num_steps": 50, "warmup_num_steps": 5, "cos_min_ratio": 0.1}})");
  CHECK(cosine.decay == Decay::Cosine);
  CHECK(cosine.min_lr_ratio == 0.1);
  CHECK(optimizer(R"({"type": "WarmupCosineLR", "params": {"total_num_steps": 50}})").min_lr_ratio == 0.0001);
}

TEST_CASE("DeepSpeed: a scheduler goes before --lr_scheduler_type, as in the Trainer, and the run says so",
          "[dialects]") {
  Files files;
  const std::string path = files.add("ds.json", R"({"scheduler": {"type": "WarmupLR"}, "gradient_clipping": 1})");
  const config::Loaded loaded =
      load({"--deepspeed", path, "--lr_scheduler_type", "cosine_with_min_lr", "--max_steps", "9"});
  CHECK(loaded.config.optimizer.decay == Decay::Constant);
  CHECK(loaded.notes == Lines{"--lr_scheduler_type: lr_scheduler_type cosine_with_min_lr changes nothing: DeepSpeed's "
                              "json has a scheduler, which goes before it, as in the Trainer"});
  const std::string without = files.add("no.json", R"({"gradient_clipping": 1})");
  CHECK(load({"--deepspeed", without, "--lr_scheduler_type", "cosine"}).config.optimizer.decay == Decay::Cosine);
  CHECK(load({"--deepspeed", without}).config.optimizer.decay == Decay::Linear);  // the Trainer's own
}

TEST_CASE("DeepSpeed: types, the scale of the loss and reports", "[dialects]") {
  CHECK(config_of(R"({"bf16": {"enabled": true}})").parallel.param_dtype == Precision::BFloat16);
  CHECK(config_of(R"({"bfloat16": {"enabled": true}, "gradient_clipping": 1})").parallel.param_dtype ==
        Precision::BFloat16);
  const Config half = config_of(R"({"fp16": {"enabled": true, "loss_scale": 128}, "communication_data_type": "fp16"})");
  CHECK(half.training.loss_scale == "128");
  CHECK(half.parallel.reduce_dtype == Precision::Float16);
  CHECK(config_of(R"({"fp16": {"enabled": false}, "bf16": {"enabled": false}})").parallel.param_dtype ==
        Precision::Float32);
  CHECK(config_of(R"({"fp16": {"enabled": false}, "bf16": {"enabled": true}})").parallel.param_dtype ==
        Precision::BFloat16);
  Files files;
  CHECK(files.relative(load_file(files, "a.json", R"({"fp16": {"enabled": true, "hysteresis": 2}})").notes) ==
        Lines{"a.json:1: fp16.hysteresis 2 changes nothing: the scale falls at the first overflow, so that fewer steps "
              "are skipped"});
  CHECK(
      config_of(R"({"gradient_clipping": 1, "tensorboard": {"enabled": true, "output_path": "logs", "job_name": "a"}})")
          .metrics.tensorboard == "logs/a");
  CHECK(config_of(R"({"steps_per_print": 1e5})").metrics.interval == 100'000);
  CHECK(config_of(R"({"steps_per_print": 2000})", {"--logging_steps", "5"}).metrics.interval == 5);
  CHECK(config_of(R"({"gradient_clipping": 1, "tensor_parallel": {"autotp_size": 2}})").parallel.tensor == 2);
}

TEST_CASE("DeepSpeed: sections that are off ask for nothing", "[dialects]") {
  Files files;
  const config::Loaded loaded = load_file(files, "a.json", R"({"train_micro_batch_size_per_gpu": 1,
"amp": {"enabled": false, "opt_level": "O1"}, "elasticity": {"enabled": false, "max_train_batch_size": 2000},
"flops_profiler": {"enabled": false, "profile_step": 1, "detailed": true}, "wandb": {"enabled": false},
"curriculum_learning": {"enabled": false, "params": {"a": {"b": 1}}}, "zero_allow_untested_optimizer": true,
"_comment": "nothing", "wall_clock_breakdown": false, "memory_breakdown": false, "prescale_gradients": false})");
  CHECK(loaded.notes.empty());
}

TEST_CASE("DeepSpeed: what cannot be is refused by name, with what would be right", "[dialects]") {
  struct Case {
    const char *json, *message;
  };
  const std::vector<Case> cases{
      {R"({"zero_optimisation": {"stage": 3}, "train_batch_size": 8})",
       "a.json:1: unknown key zero_optimisation.stage of DeepSpeed; did you mean zero_optimization.stage?"},
      {R"({"zero_optimization": {"stage": 3, "overlap_com": true}})",
       "a.json:1: unknown key zero_optimization.overlap_com of DeepSpeed; did you mean "
       "zero_optimization.overlap_comm?"},
      {R"({"zero_optimization": {"stage": 4}})", "a.json:1: zero_optimization.stage is '4'; use 0, 1, 2 or 3"},
      {R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/d"}}})",
       "a.json:1: zero_optimization.offload_param.device is nvme: nothing is kept on NVMe here; use cpu"},
      {R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": true}})",
       "a.json:1: zero_optimization.zero_quantized_weights is true: values are exchanged in their own type here"},
      {R"({"gradient_clipping": 1, "optimizer": {"type": "Lamb", "params": {"lr": 1}}})",
       "a.json:1: optimizer.type is Lamb: AdamW is what is offered, which Adam is in DeepSpeed too"},
      {R"({"gradient_clipping": 1, "optimizer": {"type": "Adam", "params": {"lr": 1, "adam_w_mode": false}}})",
       "a.json:1: optimizer.params.adam_w_mode is false: Adam would have L2 regularisation then; AdamW is what"},
      {R"({"gradient_clipping": 1, "optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1}}})",
       "a.json:1: optimizer.params.max_grad_norm is 1: DeepSpeed takes it as gradient_clipping"},
      {R"({"gradient_clipping": 1, "scheduler": {"type": "OneCycle"}})",
       "a.json:1: scheduler.type is OneCycle: WarmupLR, WarmupDecayLR and WarmupCosineLR are offered"},
      {R"({"gradient_clipping": 1, "scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 9}}})",
       "a.json:1: scheduler.params.total_num_steps is none of WarmupLR's (a.json:1); leave it out"},
      {R"({"gradient_clipping": 1, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9}}})",
       "a.json:1: scheduler.params.total_num_steps is 9, but the steps of this run follow from its data; write auto, "
       "or"},
      {R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})",
       "a.json:1: fp16.enabled true contradicts bf16.enabled true (a.json:1): parallel.param_dtype would be bf16 and"},
      {R"({"fp16": {"enabled": true, "initial_scale_power": 200}})",
       "a.json:1: fp16.initial_scale_power is 200; use 0 to 99"},
      {R"({"gradient_clipping": 1, "amp": {"enabled": true}})", "a.json:1: amp.enabled is true: Apex is not offered"},
      {R"({"gradient_clipping": 1, "sparse_attention": {"mode": "fixed"}})",
       "a.json:1: sparse_attention.mode is fixed: attention is dense here; leave it out"},
      {R"({"gradient_clipping": 1, "elasticity": {"enabled": true}})",
       "a.json:1: elasticity.enabled is true: trainyard"},
      {R"({"gradient_clipping": "much"})",
       "a.json:1: gradient_clipping (training.clip_grad_norm) is 'much'; it must be a number"},
      {R"({"train_batch_size": 8, "bf16": {"enabled": "on the GPU"}})",
       "a.json:1: bf16.enabled is 'on the GPU'; use true, false or auto"},
  };
  for (const Case& each : cases) {
    INFO(each.json);
    CHECK_THAT(error_of_file("a.json", each.json), Catch::StartsWith(each.message));
  }
}

TEST_CASE("DeepSpeed: Accelerate's deepspeed_config is read, and the json that it names", "[dialects]") {
  Files files;
  const auto of = [&](const std::string& section, const std::string& precision = "no") {
    return load_file(files, "a.yaml",
                     "distributed_type: DEEPSPEED\nmixed_precision: " + precision + "\ndeepspeed_config:\n" + section);
  };
  const Config config = of(R"(  gradient_accumulation_steps: 4
  gradient_clipping: 0.7
  offload_optimizer_device: cpu
  offload_param_device: none
  zero3_init_flag: true
  zero3_save_16bit_model: true
  zero_stage: 3
  deepspeed_multinode_launcher: standard
)",
                           "bf16")
                            .config;
  CHECK(config.parallel.strategy == Strategy::FullShard);
  CHECK(config.parallel.param_dtype == Precision::BFloat16);
  CHECK(config.parallel.offload);
  CHECK(config.training.accumulation_steps == 4);
  CHECK(config.training.clip_grad_norm == 0.7);
  CHECK(config.checkpoint.final_state_dict == config::FinalStateDict::Full);
  CHECK(of("  zero3_init_flag: false\n").config.parallel.strategy == Strategy::ShardGradOp);  // its default is stage 2
  CHECK(of("  zero_stage: 0\n").config.parallel.strategy == Strategy::NoShard);

  const std::string json = files.add("ds.json", R"({"zero_optimization": {"stage": 3}, "gradient_clipping": 0.25})");
  const config::Loaded named = of("  deepspeed_config_file: " + json + "\n  zero3_init_flag: true\n");
  CHECK(named.config.parallel.strategy == Strategy::FullShard);
  CHECK(named.config.training.clip_grad_norm == 0.25);
  CHECK(named.texts.size() == 2);
  CHECK(files.relative(config::error_of([&] { of("  deepspeed_config_file: " + json + "\n  zero_stage: 3\n"); })) ==
        "a.yaml:5: zero_stage 3 would be passed over, as deepspeed_config_file ds.json (a.yaml:4) says it; write it "
        "there");
  CHECK_THAT(files.relative(config::error_of([&] { of("  deepspeed_config_file: " + json + "\n", "bf16"); })),
             Catch::StartsWith("a.yaml:2: mixed_precision bf16 would be passed over, as deepspeed_config_file"));
  CHECK(files.relative(config::error_of([&] { of("  offload_param_device: nvme\n"); })) ==
        "a.yaml:4: offload_param_device is nvme: nothing is kept on NVMe here; use cpu");
  CHECK(files.relative(config::error_of([&] { of("  zero_stages: 3\n"); })) ==
        "a.yaml:4: unknown key zero_stages of accelerate; did you mean zero_stage?");
}

TEST_CASE("DeepSpeed: the flags of accelerate launch are flags of train", "[dialects]") {
  const Config config = load({"--use_deepspeed", "--zero_stage", "3", "--offload_optimizer_device=cpu",
                              "--gradient_accumulation_steps", "2", "--gradient_clipping", "0.5", "--zero3_init_flag",
                              "true", "--deepspeed_multinode_launcher", "standard"})
                            .config;
  CHECK(config.parallel.strategy == Strategy::FullShard);
  CHECK(config.parallel.offload);
  CHECK(config.training.accumulation_steps == 2);
  CHECK(config.training.clip_grad_norm == 0.5);
}

}  // namespace
}  // namespace trainyard::dialects
