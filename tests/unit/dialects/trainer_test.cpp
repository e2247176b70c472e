// The flags of transformers' Trainer: its schedules, and what it takes where a flag is left out.
#include <catch2/catch.hpp>

#include "config/print.h"
#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {
using config::Config;
using config::Decay;

config::Optimizer optimizer_of(std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--max_steps", "10", "--learning_rate", "1e-3"});
  return load(flags).config.optimizer;
}

TEST_CASE("Trainer: values that stand for none, or for a place that it knows", "[dialects]") {
  CHECK(load({"--learning_rate=1e-4", "--max_steps", "-1"}).config.training.steps == 0);
  CHECK(load({"--learning_rate=1e-4", "--max_steps", "-1"}).config.training.epochs == 3);
  CHECK(load({"--resume_from_checkpoint", "True"}).config.checkpoint.resume == "auto");
  CHECK(load({"--resume_from_checkpoint=false"}).config.checkpoint.resume == "never");
}

TEST_CASE("Trainer: each lr_scheduler_type brings its shape, its floor and a warm-up from zero", "[dialects]") {
  struct Case {
    const char* word;
    std::vector<std::string> more;
    Decay decay;
    double floor;
    int warmup;
    bool is_from_zero;
  };
  const double unused = Config{}.optimizer.min_lr_ratio;
  const std::vector<Case> cases{
      {"linear", {}, Decay::Linear, 0, 2, true},
      {"cosine", {}, Decay::Cosine, 0, 2, true},
      {"COSINE", {}, Decay::Cosine, 0, 2, true},
      {"constant", {}, Decay::Constant, unused, 0, false},
      {"constant_with_warmup", {}, Decay::Constant, unused, 2, true},
      {"polynomial", {}, Decay::Linear, 1e-4, 2, true},
      {"polynomial", {"--lr_scheduler_kwargs", R"({"lr_end": 1e-5})"}, Decay::Linear, 0.01, 2, true},
      {"cosine_with_min_lr", {"--lr_scheduler_kwargs", R"({"min_lr": 1e-4})"}, Decay::Cosine, 0.1, 2, true},
      {"cosine_with_min_lr", {"--lr_scheduler_kwargs={\"min_lr_rate\": 0.3}"}, Decay::Cosine, 0.3, 2, true},
  };
  for (const Case& each : cases) {
    INFO(each.word);
    std::vector<std::string> flags{"--lr_scheduler_type", each.word, "--warmup_steps", "2"};
    flags.insert(flags.end(), each.more.begin(), each.more.end());
    const config::Optimizer optimizer = optimizer_of(flags);
    CHECK(optimizer.decay == each.decay);
    CHECK(optimizer.min_lr_ratio == Approx(each.floor));
    CHECK(optimizer.warmup_steps == each.warmup);
    CHECK(optimizer.warmup_from_zero == each.is_from_zero);
  }
}

TEST_CASE("Trainer: lr_scheduler_type constant has no warm-up, which is told", "[dialects]") {
  const config::Loaded loaded = load({"--lr_scheduler_type", "constant", "--warmup_steps", "2", "--max_steps", "10"});
  CHECK(loaded.notes ==
        std::vector<std::string>{
            "--warmup_steps: warmup_steps 2 changes nothing: lr_scheduler_type constant has no warm-up"});
  Files files;
  const std::string ours = files.add("ours.yaml", "optimizer: {warmup_steps: 5}\n");
  CHECK(load({"--config", ours, "--lr_scheduler_type", "constant"}).config.optimizer.warmup_steps == 0);
}

TEST_CASE("Trainer: a warm-up is steps or, below 1, a fraction of them that rounds up", "[dialects]") {
  const auto warmup = [](const std::vector<std::string>& flags) { return optimizer_of(flags).warmup_steps; };
  CHECK(warmup({"--warmup_steps", "3"}) == 3);
  CHECK(warmup({"--warmup_steps", "3.0"}) == 3);
  CHECK(warmup({"--warmup_steps", "0.2"}) == 2);
  CHECK(warmup({"--warmup_steps", "0.21"}) == 3);
  CHECK(warmup({"--warmup_ratio", "0.03"}) == 1);
  CHECK(warmup({"--warmup_ratio", "1"}) == 10);
  CHECK(warmup({"--warmup_steps", "0", "--warmup_ratio", "0.4"}) == 4);
  CHECK(warmup({"--warmup_steps", "4", "--warmup_ratio", "0"}) == 4);
  CHECK_FALSE(optimizer_of({"--warmup_steps", "0"}).warmup_from_zero);
  CHECK(load({"--save_steps", "0.25", "--eval_steps", "0.11", "--max_steps", "10"}).config.checkpoint.interval == 3);
  CHECK(load({"--save_steps", "0.25", "--eval_steps", "0.11", "--max_steps", "10"}).config.validation.interval == 2);
  CHECK(config::error_of([&] {
          warmup({"--warmup_steps", "1.5"});
        }) ==
        "--warmup_steps: warmup_steps (optimizer.warmup_steps) is '1.5'; it must be a whole number, at least 0 and at "
        "most 1000000000000");
  CHECK(config::error_of([&] {
          warmup({"--warmup_steps", "2", "--warmup_ratio", "0.4"});
        }) ==
        "--warmup_ratio: warmup_ratio 0.4 contradicts warmup_steps 2 (--warmup_steps): optimizer.warmup_steps would be "
        "2 and 4; keep one");
  CHECK(config::error_of([] {
          load({"--warmup_ratio", "0.1"});
        }) == "--warmup_ratio is a fraction of --max_steps; give that too, or --optimizer.warmup_steps");
}

TEST_CASE("Trainer: what its flags leave out is as it has it", "[dialects]") {
  const config::Loaded loaded = load({"--per_device_train_batch_size", "4"});
  const Config& config = loaded.config;
  CHECK(config.training.batch_size == 4);
  CHECK(config.training.epochs == 3);
  CHECK(config.training.accumulation_steps == 1);
  CHECK(config.training.clip_grad_norm == 1);
  CHECK(config.optimizer.lr == 5e-5);
  CHECK(config.optimizer.decay == Decay::Linear);
  CHECK(config.optimizer.min_lr_ratio == 0);
  CHECK(config.optimizer.warmup_steps == 0);
  CHECK(config.optimizer.betas == std::vector<double>{0.9, 0.999});
  CHECK(config.optimizer.eps == 1e-8);
  CHECK(config.optimizer.weight_decay == 0);
  CHECK(config.checkpoint.interval == 500);
  CHECK(config.checkpoint.keep == 1'000'000);
  CHECK(load({"--adam_beta2", "0.95"}).config.optimizer.betas == std::vector<double>{0.9, 0.95});
  CHECK(load({"--learning_rate=1", "--optimizer.weight_decay=0.5"}).config.optimizer.weight_decay == 0.5);
  CHECK(load({"--learning_rate=1", "--optimizer.betas=0.8,0.9"}).config.optimizer.betas.front() == 0.8);
  CHECK(load({"--save_total_limit", "3"}).config.checkpoint.keep == 3);
}

TEST_CASE("Trainer: its defaults hold neither by --fsdp nor beside a file of settings or another's flags",
          "[dialects]") {
  Files files;
  const double ours = Config{}.optimizer.lr;
  const std::string yaml = files.add("ours.yaml", "training: {steps: 7}\n");
  const std::string toml = files.add("x.toml", "[training]\nsteps = 7\n");
  const auto rate = [](const std::vector<std::string>& flags) { return load(flags).config.optimizer.lr; };
  CHECK(rate({"--fsdp", "full_shard auto_wrap"}) == ours);
  CHECK(rate({"--max_steps", "7", "--bf16", "true", "--weight_decay", "0.1"}) == ours);
  CHECK(rate({"--config", yaml, "--warmup_steps", "2"}) == ours);
  CHECK(rate({"--config", toml, "--num_train_epochs", "2"}) == 8e-4);
  CHECK(rate({"--num_train_epochs", "2", "--model_type", "qwen3"}) == 1e-4);
  CHECK(rate({"--fsdp", "full_shard", "--num_train_epochs", "2"}) == 5e-5);
}

TEST_CASE("Trainer: the printed configuration says whose flags were understood", "[dialects]") {
  const auto printed = [](const std::vector<std::string>& flags) { return config::print_config(load(flags)); };
  CHECK_THAT(
      printed({"--max_steps=3", "--adam_epsilon=1e-6", "--learning_rate=1"}),
      Catch::Contains("\n# Understood as transformers' Trainer (--learning_rate): what is left out is as there\n"));
  CHECK_THAT(printed({"--model_type", "qwen3"}),
             Catch::Contains("\n# Understood as the HyperPod example (--model_type): what is left out is as there\n"));
  CHECK_THAT(printed({"--max_steps", "3"}), !Catch::Contains("# Understood"));
}

TEST_CASE("Trainer: flags that contradict it are refused", "[dialects]") {
  struct Case {
    std::vector<std::string> flags;
    const char* message;
  };
  const std::vector<Case> cases{
      {{"--lr_scheduler_type", "linear", "--lr_decay_style", "cosine"},
       "--lr_decay_style: lr_decay_style cosine contradicts lr_scheduler_type linear (--lr_scheduler_type): "},
      {{"--lr_scheduler_type", "linear", "--min_lr", "1e-4", "--lr", "1e-3"},
       "--min_lr: min_lr 1e-4 contradicts lr_scheduler_type linear (--lr_scheduler_type): optimizer.min_lr_ratio"},
      {{"--lr_scheduler_type", "linear", "--optimizer.min_lr_ratio", "0.5"},
       "--lr_scheduler_type contradicts --optimizer.min_lr_ratio: optimizer.min_lr_ratio would be 0 and 0.5"},
      {{"--lr_scheduler_type", "constant", "--warmup", "0.5", "--max_steps", "10"},
       "--warmup: warmup 0.5 contradicts lr_scheduler_type constant"},
      {{"--learning_rate", "1", "--lr", "2"}, "--lr: lr 2 contradicts learning_rate 1 (--learning_rate)"},
      {{"--adam_beta2", "0.99", "--beta2", "0.95"}, "--beta2: beta2 0.95 contradicts adam_beta2 0.99"},
      {{"--lr_scheduler_type", "cosine", "--lr_scheduler_kwargs", R"({"min_lr_rate": 0.1})"},
       "--lr_scheduler_kwargs:1: lr_scheduler_kwargs.min_lr_rate 0.1 contradicts lr_scheduler_type cosine"},
      {{"--lr_scheduler_type", "cosine_with_min_lr"},
       "--lr_scheduler_type is cosine_with_min_lr, which needs --lr_scheduler_kwargs '{\"min_lr\": …}'"},
      {{"--lr_scheduler_type", "inverse_sqrt"},
       "--lr_scheduler_type: lr_scheduler_type is inverse_sqrt: linear, cosine, cosine_with_min_lr, polynomial"},
      {{"--lr_scheduler_kwargs", R"({"num_cycles": 2})"},
       "--lr_scheduler_kwargs:1: unknown key lr_scheduler_kwargs.num_cycles of training scripts"},
  };
  for (const Case& each : cases) {
    INFO(each.flags.back());
    CHECK_THAT(config::error_of([&] { load(each.flags); }), Catch::StartsWith(each.message));
  }
}

}  // namespace
}  // namespace trainyard::dialects
