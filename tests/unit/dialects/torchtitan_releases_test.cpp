// What torchtitan wrote from 2024 on: renamed keys, and what a release takes where a key is left out.
#include <catch2/catch.hpp>

#include <set>

#include "base/files.h"
#include "config/print.h"
#include "config/schema.h"
#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {

using config::Config;

Config loaded_from(const std::string& toml, const std::vector<std::string>& flags = {}) {
  Files files;
  return load_file(files, "a.toml", toml, flags).config;
}

TEST_CASE("torchtitan: every key of its older releases is known, and its defaults are those of today", "[dialects]") {
  Files files;
  const config::Loaded silent = load_file(files, "silent.toml", "");
  // The data and the folders are for each to say, and ours are kept of what bears no meaning for results.
  const std::set<std::string> others{"data.path",         "training.deterministic", "data.tokenizer",  "checkpoint.dir",
                                     "metrics.dir",       "parallel.replicate",     "checkpoint.keep", "comm.timeout",
                                     "rendezvous.timeout"};
  for (const char* const name : {"torchtitan_2024.toml", "torchtitan_2025.toml"}) {
    const std::string text = read_file(test::in_repository(std::string("tests/unit/dialects/") + name));
    const config::Loaded spelt = load_file(files, name, text);
    for (const config::Key& key : config::keys()) {
      INFO(key.full_name() << " from " << spelt.origin(key.full_name()));
      if (key.full_name() == "checkpoint.final_model_only" || others.contains(key.full_name())) continue;
      CHECK(key.get(spelt.config) == key.get(silent.config));
    }
  }
}

TEST_CASE("torchtitan: a key that was renamed means what its new name does", "[dialects]") {
  CHECK(loaded_from("[lr_scheduler]\nlr_min = 0.2\n").optimizer.min_lr_ratio == 0.2);
  CHECK(loaded_from("[checkpoint]\nenable_checkpoint = true\nmodel_weights_only = true\n").checkpoint.final_model_only);
  CHECK_FALSE(loaded_from("[checkpoint]\nenable_checkpoint = true\nlast_save_model_weights_only = false\n")
                  .checkpoint.final_model_only);
  CHECK(loaded_from("[checkpoint]\nenable_checkpoint = true\nlast_save_in_safetensors_format = true\n")
            .checkpoint.final_state_dict == config::FinalStateDict::Full);
  CHECK_FALSE(loaded_from("[checkpoint]\nenable_checkpoint = true\ninitial_load_path = \"x\"\n"
                          "initial_load_model_weights_only = false\n")
                  .checkpoint.initial_load_model_only);
  CHECK(loaded_from("[validation]\nenabled = true\nfreq = 7\ndataset_path = \"v.txt\"\n").validation.interval == 7);
  CHECK(loaded_from("[training]\nseed = 5\n").training.seed == 5);
  CHECK(loaded_from("[training]\nseed = 5\n").model.seed == 5);
  CHECK(loaded_from("[debug]\nseed = 4\n", {"--training.seed", "5"}).model.seed == 4);  // the flag is ours
  CHECK(loaded_from("[training]\ndataset = \"c4_mini\"\n").data.path == "torchtitan/datasets/c4_mini");
}

TEST_CASE("torchtitan: degrees and strategies of 2024 stand in training and experimental", "[dialects]") {
  using config::Strategy;
  const auto parallel = [](const std::string& keys) { return loaded_from(keys).parallel; };
  CHECK(parallel("[training]\ndata_parallel_replicate_degree = 2\n").strategy == Strategy::HybridShard);
  CHECK(parallel("[training]\ndata_parallel_shard_degree = 1\n").strategy == Strategy::NoShard);
  CHECK(parallel("[training]\ndata_parallel_type = \"ddp\"\n").strategy == Strategy::NoShard);
  CHECK(parallel("[training]\nfsdp_reshard_after_forward = \"never\"\n").strategy == Strategy::ShardGradOp);
  CHECK_FALSE(parallel("[training]\ntensor_parallel_degree = 2\nenable_loss_parallel = false\n").loss_parallel);
  CHECK_FALSE(parallel("[training]\ntensor_parallel_degree = 2\ndisable_loss_parallel = true\n").loss_parallel);
  CHECK(parallel("[experimental]\ncontext_parallel_degree = 2\ncontext_parallel_rotate_method = \"alltoall\"\n")
            .context_method == config::ContextMethod::Ring);
}

TEST_CASE("torchtitan: float8 of 2024 is switched on, and its gather acts then", "[dialects]") {
  using config::Float8Recipe;
  const auto float8 = [](const std::string& keys) { return loaded_from(keys).float8; };
  CHECK(float8("[training]\nfp8_linear = \"dynamic\"\n").recipe == Float8Recipe::Tensorwise);
  CHECK(float8("[training]\nfp8_linear = true\n").recipe == Float8Recipe::Tensorwise);
  CHECK(float8("[training]\nfp8_linear = \"\"\n").recipe == Float8Recipe::None);
  CHECK(float8("[float8]\nenable_float8_linear = true\nenable_fsdp_float8_all_gather = true\n").all_gather);
  CHECK(float8("[training]\nenable_float8_linear = true\nenable_fsdp_float8_all_gather = true\n").all_gather);
  CHECK_FALSE(float8("[float8]\nenable_float8_linear = false\nenable_fsdp_float8_all_gather = true\n").all_gather);
  CHECK_THAT(error_of_file("a.toml", "[training]\nfp8_linear = \"delayed\"\n"),
             Catch::StartsWith("a.toml:2: training.fp8_linear is 'delayed'; use "));
  CHECK_THAT(error_of_file("a.toml", "[float8]\nscaling_type_input = \"delayed\"\n"),
             Catch::EndsWith("scales are dynamic; use dynamic"));
}

TEST_CASE("torchtitan: a key of one release alone decides what is deleted, and else nothing is", "[dialects]") {
  struct Case {
    const char* keys;
    int64_t keep;
    bool is_model_only;
    const char* understood;
  };
  constexpr int64_t kAll = 1'000'000;
  const std::vector<Case> cases{
      {"[checkpoint]\nenable_checkpoint = true\ninterval_type = \"steps\"\n", kAll, false,
       "# Understood as torchtitan of 2024 (a.toml:3): what is left out is as there\n"},
      {"[lr_scheduler]\nlr_min = 0.0\n[checkpoint]\nenable_checkpoint = true\n", 10, false,
       "# Understood as torchtitan 0.1.0 (a.toml:2): what is left out is as there\n"},
      {"[checkpoint]\nenable = true\n", 10, true,
       "# Understood as torchtitan 0.2.2 (a.toml:2): what is left out is as there\n"},
      {"[checkpoint]\nenable_checkpoint = true\n", kAll, false,
       "# Understood as torchtitan 0.2.2, the newest that has a TOML: no key decides the release, so what is left out "
       "is as there, but nothing is deleted\n"},
      {"[checkpoint]\nenable = true\nkeep_latest_k = 3\nlast_save_model_only = false\n", 3, false, "0.2.2 (a.toml:2)"},
  };
  for (const Case& each : cases) {
    INFO(each.keys);
    Files files;
    const config::Loaded loaded = load_file(files, "a.toml", each.keys);
    CHECK(loaded.config.checkpoint.keep == each.keep);
    CHECK(loaded.config.checkpoint.final_model_only == each.is_model_only);
    CHECK_THAT(files.relative(config::print_config(loaded)), Catch::Contains(each.understood));
  }
}

TEST_CASE("torchtitan: what only other intervals and metrics have is refused by name", "[dialects]") {
  CHECK(error_of_file("a.toml", "[checkpoint]\ninterval_type = \"seconds\"\n") ==
        "a.toml:2: checkpoint.interval_type is seconds: checkpoints go by steps here; use steps, and an interval in "
        "steps");
  CHECK_THAT(error_of_file("a.toml", "[metrics]\nrank_0_only = false\n"),
             Catch::StartsWith("a.toml:2: metrics.rank_0_only is false: "));
}

}  // namespace
}  // namespace trainyard::dialects
