// The flags of transformers' Trainer: its schedules, and what it takes where a flag is left out.
#include <catch2/catch.hpp>

#include <chrono>

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
          load({"--save_steps", "0.1"});
        }) == "--save_steps is a fraction of --max_steps; give that too, or --checkpoint.interval");
}

TEST_CASE("Trainer: a warm-up that is a fraction of epochs stays one until the data says the steps", "[dialects]") {
  const std::vector<std::vector<std::string>> trials{{"--warmup_ratio", "0.03", "--num_train_epochs", "2"},
                                                     {"--warmup_steps", "0.03", "--num_train_epochs", "2"},
                                                     {"--warmup_steps", "0", "--warmup_ratio", "0.03"},
                                                     {"--warmup", "0.03", "--epochs", "2"}};
  for (const auto& flags : trials) {
    INFO(flags.front());
    const Config config = load(flags).config;
    CHECK(config.optimizer.warmup_ratio == 0.03);
    CHECK(config.optimizer.warmup_steps == 0);
  }
  CHECK(load({"--warmup_ratio", "0.03"}).config.optimizer.warmup_from_zero);
  CHECK(load({"--warmup_ratio", "0.5", "--max_steps", "9"}).config.optimizer.warmup_ratio == 0);
  CHECK(load({"--warmup_ratio", "0.5", "--lr_scheduler_type", "constant"}).config.optimizer.warmup_ratio == 0);
  const config::Loaded both = load({"--warmup_ratio", "0.5", "--warmup_steps", "7"});  // there steps go before a ratio
  CHECK(both.config.optimizer.warmup_steps == 7);
  CHECK(both.config.optimizer.warmup_ratio == 0);
  CHECK_THAT(config::error_of([] { load({"--warmup_ratio", "1.5"}); }),
             Catch::StartsWith("--warmup_ratio: warmup_ratio (optimizer.warmup_ratio) is '1.5'; it must be a number"));
}

TEST_CASE("Trainer: epochs may be a part of one", "[dialects]") {
  CHECK(load({"--num_train_epochs", "0.5"}).config.training.epochs == 0.5);
  CHECK(load({"--num_train_epochs", "3.0"}).config.training.epochs == 3);
}

TEST_CASE("Trainer: flags that mean something here", "[dialects]") {
  const auto config = [](const std::vector<std::string>& flags) { return load(flags).config; };
  CHECK(config({"--optim", "adamw_torch"}).optimizer.lr == 5e-5);
  CHECK(config({"--optim=adamw_torch_fused"}).optimizer.lr == 5e-5);
  const auto of_corpus = [](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--dataset", "corpus.jsonl"});
    return load(flags).config;
  };
  const Config loader = of_corpus({"--dataloader_num_workers", "4", "--dataloader_prefetch_factor", "3"});
  CHECK(loader.data.num_workers == 4);
  CHECK(loader.data.prefetch_factor == 3);
  CHECK_FALSE(of_corpus({"--train_sampling_strategy", "sequential"}).data.shuffle);
  CHECK(of_corpus({"--data_seed", "7"}).data.seed == 7);

  CHECK(config({"--save_strategy", "steps", "--save_steps", "7"}).checkpoint.interval == 7);
  const Config at_epochs = config({"--save_strategy", "epoch"});
  CHECK(at_epochs.checkpoint.epoch_interval == 1);
  CHECK(at_epochs.checkpoint.interval == 0);
  const Config at_end = config({"--save_strategy", "no", "--save_steps", "7"});
  CHECK(at_end.checkpoint.enabled);
  CHECK(at_end.checkpoint.interval == 0);
  CHECK(at_end.checkpoint.epoch_interval == 0);
  CHECK(config({"--overwrite_output_dir"}).checkpoint.resume == "never");
  CHECK(config({"--overwrite_output_dir", "--resume_from_checkpoint", "old"}).checkpoint.resume == "old");
  CHECK(config({"--ignore_data_skip"}).checkpoint.exclude == "data");

  CHECK(config({"--eval_strategy", "steps", "--eval_steps", "9"}).validation.interval == 9);
  CHECK(config({"--eval_strategy", "steps", "--logging_steps", "8"}).validation.interval == 8);
  CHECK(config({"--evaluation_strategy", "steps"}).validation.interval == 500);
  const Config validated = config({"--eval_strategy", "epoch", "--eval_steps", "9", "--val_split", "0.1"});
  CHECK(validated.validation.epoch_interval == 1);
  CHECK(validated.validation.interval == 0);
  CHECK(config({"--eval_strategy", "no", "--eval_steps", "9"}).validation.interval == 0);

  CHECK(config({"--report_to", "tensorboard", "--output_dir", "out"}).metrics.tensorboard == "out/runs");
  CHECK(config({"--report_to", "all", "--logging_dir", "logs"}).metrics.tensorboard == "logs");
  CHECK(config({"--report_to", "none"}).metrics.tensorboard.empty());
  CHECK(config({"--ddp_timeout", "60"}).comm.timeout == std::chrono::seconds(60));
  CHECK(config({"--ddp_backend", "gloo"}).comm.backend == config::Backend::Gloo);
}

TEST_CASE("Trainer: flags that change nothing are taken, and those of which more might be expected say why",
          "[dialects]") {
  struct Case {
    std::vector<std::string> flags;
    std::string note;
  };
  const std::vector<Case> cases{
      {{"--dataloader_pin_memory"}, ""},
      {{"--no_dataloader_pin_memory"},
       "--no_dataloader_pin_memory: dataloader_pin_memory false changes nothing: batches are copied over pinned memory "
       "where there is a GPU"},
      {{"--dataloader_drop_last", "false"}, ""},
      {{"--dataloader_drop_last", "true"},
       "--dataloader_drop_last: dataloader_drop_last true changes nothing: a batch of text is always full: the next "
       "pass goes on in it"},
      {{"--dataloader_persistent_workers"}, ""},
      {{"--save_strategy", "steps"}, ""},
      {{"--save_strategy", "epoch"}, ""},
      {{"--save_strategy", "epoch", "--save_steps", "7"},
       "--save_steps: save_steps 7 changes nothing: save_strategy is not steps"},
      {{"--eval_strategy", "no", "--eval_steps", "7"},
       "--eval_steps: eval_steps 7 changes nothing: eval_strategy is no"},
      {{"--report_to", "wandb"},
       "--report_to: report_to wandb changes nothing: every step is in metrics.jsonl, and TensorBoard and Prometheus "
       "can read along"},
      {{"--do_train", "--do_eval"}, ""},
      {{"--logging_strategy", "epoch"},
       "--logging_strategy: logging_strategy epoch changes nothing: lines come by steps, as logging_steps says"},
  };
  for (const Case& each : cases) {
    INFO(each.flags.front());
    const std::vector<std::string> wanted{each.note};
    CHECK(load(each.flags).notes == (each.note.empty() ? std::vector<std::string>{} : wanted));
  }
}

TEST_CASE("Trainer: flags that would change the result are refused by name", "[dialects]") {
  struct Case {
    std::vector<std::string> flags;
    const char* message;
  };
  const std::vector<Case> cases{
      {{"--optim", "adafactor"},
       "--optim: optim is adafactor: AdamW as PyTorch has it is what is offered; use adamw_torch or adamw_torch_fused"},
      {{"--save_strategy", "best"}, "--save_strategy: save_strategy is best: no measure chooses a checkpoint here"},
      {{"--eval_strategy", "best"}, "--eval_strategy: eval_strategy is best: validations come by steps or by epochs"},
      {{"--label_smoothing_factor", "0.1"},
       "--label_smoothing_factor: label_smoothing_factor is 0.1: the loss is plain"},
      {{"--group_by_length"}, "--group_by_length: group_by_length is true: for pairs write --data.padding bucket"},
      {{"--load_best_model_at_end"}, "--load_best_model_at_end: load_best_model_at_end is true: no measure chooses"},
      {{"--neftune_noise_alpha", "5"}, "--neftune_noise_alpha: neftune_noise_alpha is 5: no noise is added"},
  };
  for (const Case& each : cases) {
    INFO(each.flags.front());
    CHECK_THAT(config::error_of([&] { load(each.flags); }), Catch::StartsWith(each.message));
  }
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
