#include "dialects/load.h"

#include <catch2/catch.hpp>

#include "config/check.h"
#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {
using config::Config;
using config::Precision;
using config::Strategy;

TEST_CASE("load: the Trainer's --fsdp and its json make one configuration", "[dialects]") {
  Files files;
  const std::string json = files.add("x.json", R"({
	"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"],
	"backward_prefetch": "backward_post",
	"fsdp_activation_checkpointing": true,
	"xla": false
})");
  const config::Loaded loaded = load({"--fsdp", "shard_grad_op auto_wrap", "--fsdp_config", json});
  CHECK(loaded.config.parallel.strategy == Strategy::ShardGradOp);
  CHECK(loaded.config.activation_checkpointing.mode == config::CheckpointingMode::Full);
  CHECK(loaded.config.parallel.backward_prefetch == config::BackwardPrefetch::Post);
  CHECK(files.relative(loaded.became.at(3)) ==
        "fsdp_backward_prefetch: backward_post → parallel.backward_prefetch backward_post (x.json:3)");
  const config::Loaded inline_json =
      load({"--fsdp", "shard_grad_op", "--fsdp_config", R"({"backward_prefetch": "backward_post"})"});
  CHECK(inline_json.config.parallel.backward_prefetch == config::BackwardPrefetch::Post);
  CHECK(inline_json.became.back() ==
        "fsdp_backward_prefetch: backward_post → parallel.backward_prefetch backward_post (--fsdp_config:1)");
  CHECK_THAT(config::error_of([] { load({"--fsdp_config={\"a\": "}); }), Catch::StartsWith("--fsdp_config:"));
  CHECK(load({"--fsdp=full shard"}).config.parallel.strategy == Strategy::FullShard);  // as a page has it
}

TEST_CASE("load: the Trainer of version 5 turns FSDP on by --fsdp alone, and its json says how", "[dialects]") {
  const auto parallel = [](const std::vector<std::string>& flags) { return load(flags).config.parallel; };
  const std::vector<std::vector<std::string>> ways{{"--fsdp"}, {"--fsdp", "True"}, {"--fsdp=true"}, {"--fsdp", "1"}};
  for (const auto& way : ways) CHECK(parallel(way).strategy == Strategy::FullShard);
  CHECK(parallel({"--fsdp", "True", "--fsdp_config", R"({"reshard_after_forward": false})"}).strategy ==
        Strategy::ShardGradOp);
  CHECK(parallel({"--fsdp", "--fsdp_config", R"({"version": 2, "cpu_offload": true})"}).offload);
  CHECK_NOTHROW(load({"--fsdp", "False"}));
  CHECK_NOTHROW(load({"--fsdp", ""}));
}

TEST_CASE("load: the files that were read are kept as they were", "[dialects]") {
  Files files;
  const std::string yaml = files.add("x.yaml", "training: {steps: 7}"), json = files.add("x.json", R"({"xla": false})");
  const config::Loaded loaded = load({"--config", yaml, "--fsdp", "full_shard", "--fsdp_config", json});
  REQUIRE(loaded.texts.size() == 2);
  CHECK(loaded.texts[0].name == json);
  CHECK(loaded.texts[1].name == yaml);
  CHECK(loaded.texts[1].text == "training: {steps: 7}");
  CHECK(load({"--fsdp", "full_shard", "--fsdp_config", R"({"xla": false})"}).texts.empty());
  CHECK(config::load({"--config", yaml}).texts.at(0).name == yaml);
}

TEST_CASE("load: what contradicts in the Trainer's words is refused", "[dialects]") {
  CHECK(config::error_of([] {
          load({"--fsdp", "full_shard no_shard"});
        }) ==
        "--fsdp: no_shard true contradicts full_shard true (--fsdp): parallel.strategy would be full_shard and "
        "no_shard; keep one");
  CHECK(config::error_of([] {
          load({"--fsdp", "ful_shard"});
        }) == "--fsdp: unknown key ful_shard of Trainer; did you mean full_shard?");
  CHECK(config::error_of([] {
          load({"--fsdp", "full_shard", "--parallel.strategy", "no_shard"});
        }) == "--fsdp contradicts --parallel.strategy: parallel.strategy would be full_shard and no_shard; keep one");
  Files files;
  const std::string both =
      files.add("both.json", R"({"min_num_params": 2000, "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]})");
  CHECK(files.relative(config::error_of([&] {
    load({"--fsdp", "full_shard auto_wrap", "--fsdp_config", both});
  })) == "both.json:1: fsdp_min_num_params 2000 contradicts fsdp_transformer_layer_cls_to_wrap [LlamaDecoderLayer] "
         "(both.json:1): one is for SIZE_BASED_WRAP, the other for TRANSFORMER_BASED_WRAP; keep one");
  const std::string json = files.add("x.json", "{\"xla\": true, \"xla_fsdp_grad_ckpt\": true}");
  CHECK(files.relative(config::error_of([&] {
    load({"--fsdp_config", json});
  })) == "x.json:1: xla is true: there is no backend for TPU and XLA here; leave it out or set it to false");
}

TEST_CASE("load: the flags of the HyperPod example", "[dialects]") {
  const Config config = load({"--max_context_width=8192",
                              "--num_key_value_heads=8",
                              "--intermediate_size=3072",
                              "--hidden_width=1024",
                              "--num_layers=28",
                              "--num_heads=16",
                              "--model_type=qwen3",
                              "--checkpoint_freq=50",
                              "--max_steps=100",
                              "--epochs=1",
                              "--logging_freq=10",
                              "--train_batch_size=1",
                              "--checkpoint_dir=./checkpoints",
                              "--resume_from_checkpoint=./checkpoints",
                              "--sharding_strategy=hybrid",
                              "--bf16",
                              "1",
                              "--warmup",
                              "0.05",
                              "--min_lr",
                              "1e-5",
                              "--lr",
                              "2e-4",
                              "--beta2",
                              "0.99",
                              "--activation_checkpointing=0",
                              "--cpu_offload",
                              "1",
                              "--limit_all_gathers=0"})
                            .config;
  CHECK(config.training.sequence_length == 8192);
  CHECK(config.model.preset == "qwen3-0.6b");
  CHECK(config.model.kv_heads == 8);
  CHECK(config.model.layers == 28);
  CHECK(config.training.steps == 100);
  CHECK(config.metrics.interval == 10);
  CHECK(config.checkpoint.interval == 50);
  CHECK(config.checkpoint.resume == "auto");
  CHECK(config.parallel.strategy == Strategy::HybridShard);
  CHECK(config.parallel.param_dtype == Precision::BFloat16);
  CHECK(config.optimizer.warmup_steps == 5);
  CHECK(config.optimizer.min_lr_ratio == Approx(0.05));
  CHECK(config.optimizer.betas == std::vector<double>{0.9, 0.99});
  CHECK(config.activation_checkpointing.mode == config::CheckpointingMode::None);
  CHECK(config.parallel.offload);
  CHECK_FALSE(config.parallel.limit_all_gathers);
}

TEST_CASE("load: what the flags of the HyperPod example leave out is as its guide has it", "[dialects]") {
  const config::Loaded loaded = load({"--model_type=llama3_2_1b", "--max_steps=1000"});
  CHECK(loaded.config.model.preset == "llama3_2_1b");
  CHECK(loaded.config.training.steps == 1000);
  CHECK(loaded.config.training.batch_size == 1);
  CHECK(loaded.config.optimizer.lr == 1e-4);
  CHECK(loaded.config.optimizer.min_lr_ratio == Approx(0.1));
  CHECK(loaded.config.optimizer.warmup_steps == 4);  // 3.2, rounded up
  CHECK(loaded.config.checkpoint.interval == 50);
  CHECK(loaded.config.metrics.interval == 10);
  CHECK(loaded.config.parallel.param_dtype == Precision::BFloat16);
  CHECK(loaded.config.optimizer.decay == config::Decay::ClampedCosine);
  CHECK(loaded.config.optimizer.warmup_from_zero);
  CHECK(loaded.config.optimizer.decayed_parameters == config::DecayedParameters::All);
  CHECK(load({"--logging_freq=5", "--optimizer.decayed_parameters=matrices"}).config.optimizer.decayed_parameters ==
        config::DecayedParameters::Matrices);
  CHECK(load({"--lr_decay_style=linear", "--warmup=0"}).config.optimizer.decay == config::Decay::ClampedLinear);
  CHECK_FALSE(load({"--lr_decay_style=linear", "--warmup=0"}).config.optimizer.warmup_from_zero);
  CHECK(load({"--lr_decay_style=constant", "--lr_decay_iters=100"}).config.optimizer.decay == config::Decay::Constant);
  CHECK(config::error_of([] { load({"--model_type=mistral", "--max_steps=50", "--lr_decay_iters=80"}); }) ==
        "--lr_decay_iters is 80, but the schedule ends with the last step, which is 50; leave it out");
  CHECK(load({"--logging_freq=5"}).config.training.steps == 100);
  CHECK(load({"--max_steps", "7"}).config.optimizer.lr == Config{}.optimizer.lr);  // the Trainer has that flag too
}

TEST_CASE("load: another program's defaults are weaker than all that is given", "[dialects]") {
  Files files;
  const std::string ours = files.add("ours.yaml", "optimizer: {lr: 5e-4}\ntraining: {batch_size: 3}\n");
  CHECK(load({"--config", ours, "--logging_freq", "5"}).config.optimizer.lr == 5e-4);
  const std::string toml = files.add("x.toml", "[training]\nlocal_batch_size = 4\n");
  const Config config = load({"--config", ours, "--config", toml}).config;
  CHECK(config.optimizer.lr == 5e-4);
  CHECK(config.training.batch_size == 4);
  CHECK(config.activation_checkpointing.n == 2);
  CHECK(load({"--config", toml, "--activation_checkpointing.mode=none"}).config.activation_checkpointing.n == 1);
  CHECK(load({"--config", toml, "--config", ours, "--training.local_batch_size=5"}).config.training.batch_size == 5);
}

TEST_CASE("load: the flags of the tutorials, with and without a value, with - or _", "[dialects]") {
  const Config tutorial = load({"--explicit-prefetching", "--mixed-precision", "--dcp-api"}).config;
  CHECK(tutorial.parallel.prefetch == 2);
  CHECK(tutorial.parallel.param_dtype == Precision::BFloat16);
  CHECK(tutorial.checkpoint.state_dict == config::StateDict::Full);
  CHECK(tutorial.checkpoint.broadcast_from_rank0);
  const Config options = load({"--full_state_dict", "false", "--broadcast-from-rank0"}).config;
  CHECK(options.checkpoint.state_dict == config::StateDict::Sharded);
  CHECK(options.checkpoint.broadcast_from_rank0);
  const Config t5 = load({"--sharding_strategy", "SHARD_GRAD_OP", "--precision", "bf16", "--use_checkpointing",
                          "--use-prefetch", "false", "--grad_acc_steps", "4", "--save_path", "saved", "--batch_size=4"})
                        .config;
  CHECK(t5.parallel.strategy == Strategy::ShardGradOp);
  CHECK(t5.activation_checkpointing.mode == config::CheckpointingMode::Full);
  CHECK(t5.parallel.prefetch == 0);
  CHECK(t5.training.accumulation_steps == 4);
  CHECK(t5.checkpoint.dir == "saved");
  CHECK(t5.checkpoint.name == "checkpoint_{strategy}");
  CHECK(t5.checkpoint.overwrite);
  CHECK(t5.checkpoint.epoch_interval == 1);
  CHECK(load({"--mixed_precision=no"}).config.parallel.param_dtype == Precision::Float32);
}

TEST_CASE("load: the model of the FSDP2 tutorial brings its example's settings, weaker than all that is given",
          "[dialects]") {
  const Config example = load({"--model", "tutorial", "--explicit-prefetching"}).config;
  CHECK(example.model.preset == "tutorial");
  CHECK(example.data.path == "random");
  CHECK(example.training.steps == 10);
  CHECK(example.training.batch_size == 32);
  CHECK(example.training.sequence_length == 64);
  CHECK(example.optimizer.lr == 1e-2);
  CHECK(example.optimizer.betas == std::vector<double>{0.9, 0.999});
  CHECK(example.optimizer.weight_decay == 0);
  CHECK(example.parallel.prefetch == 2);
  CHECK(example.parallel.unshard_early);
  CHECK(example.checkpoint.resume == "extend");
  CHECK(example.checkpoint.dir == "checkpoints/dtensor_api");
  CHECK(load({"--model", "tutorial", "--dcp-api"}).config.checkpoint.dir == "checkpoints/dcp_api");
  CHECK(load({"--model", "tutorial", "--save_path", "there"}).config.checkpoint.dir == "there");
  const Config given = load({"--model=tutorial", "--batch_size", "4", "--training.steps=3", "--model.init_from=weights",
                             "--data.tokens=ids.safetensors"})
                           .config;
  CHECK(given.training.batch_size == 4);
  CHECK(given.training.steps == 3);
  CHECK(given.model.preset.empty());
  CHECK(given.data.path.empty());
  CHECK(given.optimizer.lr == 1e-2);
  const Config other = load({"--model", "qwen3"}).config;
  CHECK(other.model.preset == "qwen3-0.6b");
  CHECK(other.optimizer.lr == Config{}.optimizer.lr);
}

TEST_CASE("load: flags of scripts are checked as ours are", "[dialects]") {
  CHECK(config::error_of([] {
          load({"--grad_acc_steps", "0"});
        }) ==
        "--grad_acc_steps: grad_acc_steps (training.accumulation_steps) is '0'; it must be a whole number, at least 1 "
        "and at most 1048576");
  CHECK(config::error_of([] { load({"--save_path"}); }) == "--save_path needs a value after it");
  CHECK(config::error_of([] {
          load({"--lr", "1e-3", "--optimizer.lr", "1e-4"});
        }) == "--lr contradicts --optimizer.lr: optimizer.lr would be 0.001 and 0.0001; keep one");
  CHECK(config::error_of([] {
          load({"--max_steps", "3", "--max_training_steps", "4"});
        }) ==
        "--max_training_steps: max_training_steps 4 contradicts max_steps 3 (--max_steps): training.steps would be 3 "
        "and 4; keep one");
  Files files;
  const std::string toml = files.add("titan.toml", "[training]\nsteps = 3\n");
  CHECK(
      config::error_of([&] {
        load({"--config", toml, "--training.local_batch_size", "2", "--training.batch_size", "1"});
      }) ==
      "--training.local_batch_size contradicts --training.batch_size: training.batch_size would be 2 and 1; keep one");
  CHECK(load({"--config", toml, "--training.batch_size", "1"}).config.training.batch_size == 1);
  CHECK(load({"--lr", "1e-3", "--lr", "1e-4"}).config.optimizer.lr == 1e-4);  // the last of a kind, as with ours
  CHECK(config::error_of([] { refuse({"--max_stepz=3"}); }) ==
        "unknown argument --max_stepz=3; did you mean --max_steps?");
  CHECK(config::error_of([] { refuse({"--nothing"}); }) == "unknown argument --nothing; --help lists all");
  CHECK(config::error_of([] {
          refuse({"--max_stepz=3", "--nothing", "of", "--ours=x"});
        }) == "unknown argument --max_stepz=3; did you mean --max_steps?; unknown besides: --nothing, --ours");
  CHECK(load({"--nothing", "of", "ours"}).rest == std::vector<std::string>{"--nothing", "of", "ours"});
}

TEST_CASE("load: --validation_freq alone holds out a share of the data, and --val_split says which", "[dialects]") {
  const auto of = [](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--validation_freq", "100", "--dataset", "corpus.txt", "--tokenizer", "bytes"});
    return load(flags);
  };
  const config::Loaded alone = of({"--model_type", "qwen3"});
  CHECK(alone.config.validation.split == 0.05);
  CHECK(alone.config.validation.interval == 100);
  CHECK(config::error_of([&] { config::check(alone); }) == "no error");
  CHECK(of({"--val_split", "0.2"}).config.validation.split == 0.2);
  CHECK(of({"--validation.split", "0.3"}).config.validation.split == 0.3);
  CHECK(of({"--validation.path", "held-out.txt"}).config.validation.split == 0);  // what is given goes before
  const config::Loaded named = of({"--val_split", "validation"});
  CHECK(named.config.validation.split == 0.05);
  CHECK(named.notes == std::vector<std::string>{"--val_split: val_split validation changes nothing: data here has no "
                                                "splits by name; a number is the share of it that is held out"});
  CHECK(load({"--validation_freq", "0"}).config.validation.split == 0);
  CHECK(config::error_of([&] {
          of({"--val_split", "1"});
        }) == "--val_split: val_split (validation.split) is '1'; it must be a number, at least 0 and below 1");
}

TEST_CASE("load: what another program's file says beside what it is for is taken and told, and ours is refused",
          "[dialects]") {
  Files files;
  const config::Loaded theirs =
      load({"--lr_decay_style", "constant", "--min_lr", "1", "--lr", "4", "--val_batch_size", "4"});
  CHECK(theirs.config.optimizer.min_lr_ratio == Config{}.optimizer.min_lr_ratio);
  CHECK(theirs.config.validation.batch_size == 0);
  CHECK(theirs.notes == std::vector<std::string>{
                            "--val_batch_size: validation.batch_size is 4 changes nothing: it is for validation.path "
                            "(or images or split) that is given, but that is not given",
                            "--min_lr: optimizer.min_lr_ratio is 0.25 changes nothing: it is for optimizer.decay "
                            "other than constant, but that is constant (--lr_decay_style)"});
  const config::Loaded ours = load({"--optimizer.decay", "constant", "--optimizer.min_lr_ratio", "0.5",
                                    "--model.preset", "tutorial", "--data.path", "a.txt", "--data.tokenizer", "bytes"});
  CHECK_THAT(config::error_of([&] { config::check(ours); }),
             Catch::StartsWith("--optimizer.min_lr_ratio is 0.5, which is for optimizer.decay other than constant"));
}

}  // namespace
}  // namespace trainyard::dialects
