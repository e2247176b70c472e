// Sources in layers: what is stronger wins, whatever names either uses, and what follows from a value follows from the
// one that wins.
#include <catch2/catch.hpp>

#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {
using config::Config;

/// The names of a guide, of which many were never torchtitan's.
const char* const kGuide = R"([model]
tokenizer_path = "./tokenizer.model"
[training]
micro_batch_size = 1
max_steps = 10000
activation_checkpoint = "selective"
compile_mode = "max-autotune"
[checkpoint]
enable_checkpoint = true
checkpoint_dir = "./checkpoints"
checkpoint_interval = 1000
async_save = true
resume_from_checkpoint = "./checkpoints/step_1000"
)";

Config guide_with(const std::vector<std::string>& flags) {
  Files files;
  return load_file(files, "guide.toml", kGuide, flags).config;
}

TEST_CASE("layers: a flag wins over a TOML, whatever names each of them uses", "[dialects]") {
  CHECK(guide_with({}).training.steps == 10000);
  CHECK(guide_with({"--training.steps", "2"}).training.steps == 2);
  CHECK(guide_with({"--training.local_batch_size=3"}).training.batch_size == 3);
  CHECK(guide_with({"--checkpoint.folder", "mine"}).checkpoint.dir == "./outputs/mine");
  CHECK(guide_with({"--checkpoint.interval", "7"}).checkpoint.interval == 7);
  CHECK_FALSE(guide_with({"--checkpoint.no_enable"}).checkpoint.enabled);
  CHECK_FALSE(guide_with({"--checkpoint.async_mode", "disabled"}).checkpoint.async);
  CHECK(guide_with({"--checkpoint.load_step", "4"}).checkpoint.resume == "./checkpoints/step-4");
  CHECK(guide_with({"--activation_checkpoint.mode=full"}).activation_checkpointing.mode ==
        config::CheckpointingMode::Full);
  CHECK(guide_with({"--compile.mode", "default"}).device.cuda_graphs == config::CudaGraphs::Never);
  CHECK(guide_with({"--model.hf_assets_path", "mine"}).data.tokenizer == "mine");
  CHECK(guide_with({"--max_steps", "5", "--batch_size", "6"}).training.steps == 5);
  Files files;
  CHECK(load({"--config", files.add("a.toml", "[training]\ntensor_parallel_degree = 8\n"),
              "--parallelism.tensor_parallel_degree=1"})
            .config.training.steps == 10000);
}

TEST_CASE("layers: a flag wins over the file that --fsdp_config names, and one given there does not", "[dialects]") {
  Files files;
  const std::string json = files.add("x.json", R"({"sharding_strategy": "NO_SHARD"})");
  const auto strategy = [&](const std::vector<std::string>& flags) { return load(flags).config.parallel.strategy; };
  CHECK(strategy({"--fsdp_config", json}) == config::Strategy::NoShard);
  CHECK(strategy({"--fsdp_config", json, "--parallel.strategy", "full_shard"}) == config::Strategy::FullShard);
  CHECK(strategy({"--fsdp", "shard_grad_op", "--fsdp_config", json}) == config::Strategy::ShardGradOp);
  CHECK_THAT(config::error_of([] {
               load({"--fsdp_config", R"({"sharding_strategy": "NO_SHARD"})", "--parallel.strategy", "full_shard"});
             }),
             Catch::StartsWith("--fsdp_config:1 contradicts --parallel.strategy: "));
}

TEST_CASE("layers: of several TOMLs the later win, whatever names each of them uses", "[dialects]") {
  Files files;
  const std::string batch = files.add("14.toml", "[training]\nmicro_batch_size = 1\nmax_steps = 100\n");
  const std::string saves =
      files.add("16.toml", "[checkpoint]\nenable_checkpoint = true\n[job]\ndump_folder = \"d\"\n");
  const std::string later = files.add("20.toml", "[training]\nsteps = 50\n[checkpoint]\nfolder = \"c\"\n");
  const std::string ours = files.add("ours.yaml", "training: {steps: 70, batch_size: 9}\n");
  const config::Loaded all = load({"--config", batch, "--job.config_file", saves, "--config", later});
  CHECK(all.config.training.batch_size == 1);
  CHECK(all.config.training.steps == 50);
  CHECK(all.config.checkpoint.enabled);
  CHECK(all.config.checkpoint.dir == "d/c");
  CHECK(files.relative(all.origin("training.steps")) == "20.toml:2 (training.steps)");
  CHECK(load({"--config", later, "--config", batch}).config.training.steps == 100);
  const Config between = load({"--config", batch, "--config", ours, "--config", later}).config;
  CHECK(between.training.steps == 50);
  CHECK(between.training.batch_size == 9);
}

TEST_CASE("layers: two names of one setting contradict each other within one of them", "[dialects]") {
  CHECK_THAT(config::error_of([] {
               guide_with({"--training.steps=1", "--training.max_steps=2"});
             }),
             Catch::StartsWith("--training.max_steps: training.max_steps 2 contradicts training.steps 1 "));
  CHECK_THAT(config::error_of([] {
               guide_with({"--training.steps=1", "--max_steps=2"});
             }),
             Catch::StartsWith("--training.steps contradicts --max_steps: training.steps would be 1 and 2; keep one"));
  CHECK(guide_with({"--training.steps=1", "--training.max_steps=1"}).training.steps == 1);
}

TEST_CASE("layers: torchtitan's warm-up and decay follow the run's steps, whoever set them", "[dialects]") {
  Files files;
  const std::string toml = files.add(
      "20.toml", "[training]\nmax_steps = 10000\n[lr_scheduler]\nwarmup_steps = 200\ndecay_ratio = 0.2\n");
  const std::string ours = files.add("b.yaml", "training: {steps: 40}\n");
  const auto of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--config", toml};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return load(arguments).config.optimizer;
  };
  CHECK(of({}).warmup_steps == 200);
  CHECK(of({}).stable_steps == 7800);
  for (const std::vector<std::string>& steps : {std::vector<std::string>{"--training.steps", "40"},
                                                {"--training.max_steps", "40"},
                                                {"--max_steps", "40"},
                                                {"--config", ours}}) {
    INFO(steps.front());
    CHECK(of(steps).warmup_steps == 40);
    CHECK(of(steps).stable_steps == 0);
  }
  CHECK(of({"--max_steps=40", "--optimizer.warmup_steps=10"}).stable_steps == 22);  // 8 of the steps decay
  CHECK(of({"--max_steps=100", "--warmup", "0.05"}).stable_steps == 75);  // another program's fraction of them
  CHECK_THAT(config::error_of([&] {
               of({"--training.steps=0"});
             }),
             Catch::EndsWith("20.toml:5: lr_scheduler.decay_ratio is a fraction of training.steps, which is 0; give "
                             "steps, or leave it out"));
  CHECK(load_file(files, "c.toml", "[training]\nwarmup_steps = 200\n", {"--max_steps", "4"})
            .config.optimizer.warmup_steps == 4);
}

TEST_CASE("layers: HyperPod's warm-up, least rate and folder to resume from follow the run's", "[dialects]") {
  Files files;
  const std::string ours =
      files.add("b.yaml", "training: {steps: 1000}\noptimizer: {lr: 2e-4}\ncheckpoint: {dir: here}\n");
  const auto of = [](std::vector<std::string> flags) {
    flags.emplace_back("--model_type=llama3_2_1b");
    return load(flags).config;
  };
  CHECK(of({"--max_steps", "1000"}).optimizer.warmup_steps == 4);
  CHECK(of({"--training.steps", "1000"}).optimizer.warmup_steps == 4);
  CHECK(of({"--lr", "2e-4"}).optimizer.min_lr_ratio == Approx(0.05));
  CHECK(of({"--optimizer.lr", "2e-4"}).optimizer.min_lr_ratio == Approx(0.05));
  CHECK(of({"--learning_rate", "2e-4"}).optimizer.min_lr_ratio == Approx(0.05));
  const Config by_file = of({"--config", ours, "--resume_from_checkpoint", "here"});
  CHECK(by_file.optimizer.warmup_steps == 4);
  CHECK(by_file.optimizer.min_lr_ratio == Approx(0.05));
  CHECK(by_file.checkpoint.resume == "auto");
  CHECK(of({"--warmup", "0.1"}).optimizer.warmup_steps == 10);  // of its guide's 100
  CHECK(files.relative(config::error_of([&] {
    of({"--config", ours, "--min_lr", "1e-3"});
  })) == "--min_lr 1e-3 is above the peak: b.yaml:2: optimizer.lr is 0.0002");
}

TEST_CASE("layers: names that are known in any section are guessed, as keys and as flags", "[dialects]") {
  CHECK(error_of_file("a.toml", "[training]\nmax_stepz = 3\n") ==
        "a.toml:2: unknown key training.max_stepz of torchtitan; did you mean training.max_steps?");
  CHECK(error_of_file("a.toml", "[checkpoint]\ncheckpoint_dirr = \"x\"\n") ==
        "a.toml:2: unknown key checkpoint.checkpoint_dirr of torchtitan; did you mean checkpoint.checkpoint_dir?");
  CHECK(error_of_file("a.toml", "", {"--training.max_stepz", "3"}) ==
        "unknown flag --training.max_stepz; did you mean --training.max_steps?");
  CHECK(error_of_file("a.toml", "", {"--training.max_stepz", "3", "--zzz.zzz=1", "--data.pathh", "x"}) ==
        "unknown flag --training.max_stepz; did you mean --training.max_steps?; unknown besides: --zzz.zzz, "
        "--data.pathh");
  CHECK(config::error_of([] { load({"--training.step=3", "--zzz.zzz=1"}); }) ==
        "unknown flag --training.step; did you mean --training.steps?; unknown besides: --zzz.zzz");
  CHECK(error_of_file("a.toml", "", {"--checkpoint.epoch_intervall=3"}) ==
        "unknown flag --checkpoint.epoch_intervall; did you mean --checkpoint.epoch_interval?");
  CHECK(error_of_file("a.toml", "", {"--optimizer.epochs=3"}) ==
        "unknown flag --optimizer.epochs; did you mean --training.epochs?");
}

TEST_CASE("layers: names that are known in any section are flags beside a TOML, and elsewhere lead to ours",
          "[dialects]") {
  const Config config = guide_with({"--training.max_steps", "3", "--training.micro_batch_size=4",
                                    "--checkpoint.no_enable_checkpoint", "--training.batch_size=4"});
  CHECK(config.training.steps == 3);
  CHECK(config.training.batch_size == 4);
  CHECK_FALSE(config.checkpoint.enabled);
  CHECK(guide_with({"--validation.batch_size=5", "--validation.path=x"}).validation.batch_size == 5);  // ours
  CHECK(config::error_of([] {
          load({"--training.max_steps", "3"});
        }) ==
        "unknown flag --training.max_steps; did you mean --training.steps (torchtitan's name is taken beside a TOML)?");
}

}  // namespace
}  // namespace trainyard::dialects
