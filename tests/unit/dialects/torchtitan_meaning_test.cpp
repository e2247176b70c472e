// What keys of torchtitan mean together: strategies, what is on, what is loaded and saved.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {

using config::Config;
using config::Strategy;

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
      {"data_parallel_shard_degree = 1\ncontext_parallel_degree = 4", Strategy::FullShard, unsaid, 1},
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

TEST_CASE("torchtitan: context parallelism has its defaults and its words", "[dialects]") {
  using config::ContextBalance;
  using config::ContextMethod;
  struct Case {
    const char* keys;
    ContextMethod method;
    ContextBalance balance;
  };
  const config::Parallel ours;
  const std::vector<Case> cases{
      {"context_parallel_degree = 1", ours.context_method, ours.context_balance},
      {"context_parallel_degree = 4", ContextMethod::AllGather, ContextBalance::HeadTail},
      {"context_parallel_degree = 4\ncontext_parallel_rotate_method = \"alltoall\"", ContextMethod::Ring,
       ContextBalance::HeadTail},
      {"context_parallel_degree = 4\ncontext_parallel_load_balancer = \"\"", ContextMethod::AllGather,
       ContextBalance::None},
  };
  for (const Case& each : cases) {
    INFO(each.keys);
    Files files;
    const config::Parallel seen =
        load_file(files, "a.toml", fmt::format("[parallelism]\n{}\n", each.keys)).config.parallel;
    CHECK(seen.context_method == each.method);
    CHECK(seen.context_balance == each.balance);
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
    return load_file(files, "a.toml", "[checkpoint]\nenable = true\n" + keys).config;
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

}  // namespace
}  // namespace trainyard::dialects
