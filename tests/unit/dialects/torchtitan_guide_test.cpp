// The snippets of a guide to torchtitan, as its readers paste them: many of its keys were never torchtitan's.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/files.h"
#include "config/check.h"
#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {

using config::Config;

Config of(const std::string& snippet) {
  Files files;
  const config::Loaded loaded = load_file(files, "guide.toml", snippet);
  CHECK_NOTHROW(config::check_for_plan(loaded));
  return loaded.config;
}

TEST_CASE("torchtitan: each snippet of a guide becomes what it says", "[dialects]") {
  const Config model = of(R"([model]
name = "llama3"
flavor = "8B"
norm_type = "rmsnorm"
tokenizer_path = "./tokenizer.model"
)");
  CHECK(model.model.preset == "llama3.1-8b");
  CHECK(model.data.tokenizer == "./tokenizer.model");

  const Config batch = of(R"([training]
micro_batch_size = 1
global_batch_size = 512
max_steps = 10000

[optimizer]
name = "AdamW"
lr = 3e-4
weight_decay = 0.1
)");
  CHECK(batch.training.batch_size == 1);
  CHECK(batch.training.global_batch_size == 512);
  CHECK(batch.training.steps == 10000);
  CHECK(batch.optimizer.lr == 3e-4);
  CHECK(batch.optimizer.weight_decay == 0.1);

  const Config checkpoints = of(R"([checkpoint]
enable_checkpoint = true
checkpoint_dir = "./checkpoints"
checkpoint_interval = 1000
async_save = true  # 비동기 저장으로 학습 중단 최소화
)");
  CHECK(checkpoints.checkpoint.enabled);
  CHECK(checkpoints.checkpoint.dir == "./checkpoints");
  CHECK(checkpoints.checkpoint.interval == 1000);
  CHECK(checkpoints.checkpoint.async);

  CHECK(of("[training]\nactivation_checkpoint = \"selective\"  # or \"full\"\n").activation_checkpointing.mode ==
        config::CheckpointingMode::Selective);
  CHECK(of("[training]\nenable_float8 = true\n").float8.recipe == config::Float8Recipe::Tensorwise);
  CHECK(of(R"([training]
compile = true
compile_mode = "max-autotune"  # or "default", "reduce-overhead"
)").device.cuda_graphs == config::CudaGraphs::Auto);
  of(R"([metrics]
enable_wandb = true
wandb_project = "torchtitan-training"
wandb_entity = "your-team"
)");
  CHECK(of(R"([profiling]
enable_profiling = true
profile_freq = 10  # 10 스텝마다 프로파일링
)").metrics.profile_interval == 10);

  const Config resumed = of(R"([checkpoint]
enable_checkpoint = true
checkpoint_dir = "./checkpoints"
resume_from_checkpoint = "./checkpoints/step_1000"
)");
  CHECK(resumed.checkpoint.dir == "./checkpoints");
  CHECK(resumed.checkpoint.resume == "./checkpoints/step_1000");
}

TEST_CASE("torchtitan: the guide's snippet of several dimensions is read as it stands", "[dialects]") {
  Files files;
  const config::Parallel parallel = load_file(files, "guide.toml", R"([training]
tensor_parallel_degree = 2
pipeline_parallel_degree = 1
data_parallel_degree = 4  # 자동 계산: total_gpus / (tp * pp)
)")
                                        .config.parallel;
  CHECK(parallel.tensor == 2);
  CHECK(parallel.shard == 4);
  CHECK(parallel.sequence_parallel);
}

TEST_CASE("torchtitan: what it says of tensor parallelism counts where there is any", "[dialects]") {
  Files files;
  const auto parallel = [&](const std::string& lines) {
    return load_file(files, "a.toml", "[parallelism]\n" + lines).config.parallel;
  };
  const config::Parallel given =
      parallel("tensor_parallel_degree = 8\nenable_async_tensor_parallel = true\ndisable_loss_parallel = true\n");
  CHECK(given.tensor == 8);
  CHECK(given.async_tensor);
  CHECK_FALSE(given.loss_parallel);
  CHECK_FALSE(parallel("tensor_parallel_degree = 2\nenable_sequence_parallel = false\n").sequence_parallel);
  CHECK_FALSE(parallel("enable_async_tensor_parallel = true\n").async_tensor);
  CHECK_THAT(error_of_file("a.toml", "[parallelism]\ndisable_loss_parallel = \"maybe\"\n"),
             Catch::Contains("parallelism.disable_loss_parallel is 'maybe'; use true or false"));
}

TEST_CASE("torchtitan: the guide's context parallelism gathers keys and values, as torchtitan does", "[dialects]") {
  Files files;
  const config::Config context =
      load_file(files, "guide.toml", "[training]\ncontext_parallel_degree = 2\nsequence_length = 8192\n").config;
  CHECK(context.parallel.context == 2);
  CHECK(context.parallel.context_method == config::ContextMethod::AllGather);
  CHECK(context.parallel.context_balance == config::ContextBalance::HeadTail);
}

TEST_CASE("torchtitan: every file that its releases brought is read whole", "[dialects]") {
  const auto folder = test::test_data() / "torchtitan";
  if (!std::filesystem::exists(folder)) return test::skip("no torchtitan/ in the reference data");
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".toml") continue;
    INFO(file.path().string());
    ++files;
    CHECK_NOTHROW(load({"--config", file.path().string()}));
  }
  CHECK(files == 15);
  Files none;
  CHECK(load_file(none, "a.toml", "[lr_scheduler]\nlr_min = 0.25\n[job]\nprint_args = false\n")
            .config.optimizer.min_lr_ratio == 0.25);
}

TEST_CASE("torchtitan: what is to be estimated or tried without ranks asks for the plan in place of training",
          "[dialects]") {
  Files files;
  const auto instead = [&](const std::string& text, const std::vector<std::string>& flags = {}) {
    return load_file(files, "a.toml", text, flags).instead;
  };
  using Commands = std::map<std::string, std::string>;
  CHECK(instead("").empty());
  CHECK(instead("[memory_estimation]\nenabled = false\n[comm]\nmode = \"default\"\n").empty());
  CHECK(instead("", {"--memory_estimation.enabled"}) == Commands{{"plan", "--memory_estimation.enabled"}});
  CHECK(instead("", {"--comm.mode=fake_backend"}) == Commands{{"plan", "--comm.mode"}});
  CHECK(instead("[memory_estimation]\nenable = true\n").size() == 1);
  CHECK_THAT(error_of_file("a.toml", "", {"--comm.mode=local_tensor"}),
             Catch::StartsWith("--comm.mode: comm.mode is local_tensor: computing all ranks in one process is not"));
  CHECK(load_file(files, "a.toml", "", {"--checkpoint.enable", "--checkpoint.create_seed_checkpoint"})
            .config.checkpoint.create_seed_checkpoint);
}

TEST_CASE("torchtitan: c4_test is a folder of its checkout, also where it is held out", "[dialects]") {
  CHECK(of("[training]\ndataset = \"c4_test\"\n").data.path == "tests/assets/c4_test");
  CHECK(of("[validation]\nenable = true\ndataset = \"c4_test\"\n").validation.path == "tests/assets/c4_test");
}

}  // namespace
}  // namespace trainyard::dialects
