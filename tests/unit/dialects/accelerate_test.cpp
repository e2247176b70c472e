#include <catch2/catch.hpp>

#include <filesystem>

#include "base/files.h"
#include "dialects/launcher.h"
#include "support/accelerate_sample.h"
#include "support/support.h"
#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {
using config::Config;
using config::Strategy;
using test::kAccelerateSample;
using Lines = std::vector<std::string>;

std::string with_line(std::string text, const std::string& key, const std::string& line) {
  const size_t at = text.find(key);
  return text.replace(at, text.find('\n', at) - at, line);
}

bool has(const Lines& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST_CASE("accelerate: the sample of its page is read, and each key tells what it became", "[dialects]") {
  Files files;
  const config::Loaded loaded = load_file(files, "fsdp.yaml", kAccelerateSample);
  CHECK(loaded.config.parallel.strategy == Strategy::FullShard);
  CHECK(loaded.config.parallel.offload);
  CHECK(loaded.config.parallel.param_dtype == config::Precision::BFloat16);
  CHECK(files.relative(loaded.origin("parallel.strategy")) == "fsdp.yaml:11 (fsdp_sharding_strategy)");
  const Lines became = files.relative(loaded.became);
  CHECK(became.size() == 25);
  CHECK(has(became, "fsdp_sharding_strategy: 1 → parallel.strategy full_shard (fsdp.yaml:11)"));
  CHECK(has(became, "mixed_precision: bf16 → parallel.param_dtype bf16 (fsdp.yaml:18)"));
  CHECK(has(became, "num_processes: 2 → --nproc-per-node 2 (fsdp.yaml:20)"));
  CHECK(has(became, "tpu_env: [] → nothing to set (fsdp.yaml:23)"));
  CHECK(has(files.relative(loaded.notes),
            "fsdp.yaml:15: fsdp_use_orig_params true changes nothing: parameters keep their names and shapes in any "
            "case"));
}

/// The block of code in one of the pages that begins with `first`; "" where none does.
std::string block_of_pages(const std::filesystem::path& pages, const std::string& first) {
  for (const auto& page : std::filesystem::directory_iterator(pages)) {
    const std::string text = read_file(page.path());
    if (const size_t begin = text.find("```yaml\n" + first); begin != std::string::npos)
      return text.substr(begin + 8, text.find("```", begin + 8) - begin - 8);
  }
  return "";
}

TEST_CASE("accelerate: the sample of these tests is the page's own, letter by letter", "[dialects]") {
  const std::filesystem::path pages = test::test_data().parent_path() / "sources";
  if (test::test_data().empty() || !std::filesystem::exists(pages)) return test::skip("the pages are not here");
  CHECK(block_of_pages(pages, "compute_environment: LOCAL_MACHINE\n") == kAccelerateSample);
}

TEST_CASE("accelerate: flags of ours win over its file, and its file over one before it", "[dialects]") {
  Files files;
  const std::string ours = files.add("ours.yaml", "parallel: {strategy: no_shard, param_dtype: fp32}\n");
  const config::Loaded loaded =
      load({"--config", ours, "--config", files.add("fsdp.yaml", kAccelerateSample), "--parallel.param_dtype", "fp32"});
  CHECK(loaded.config.parallel.strategy == Strategy::FullShard);
  CHECK(loaded.config.parallel.param_dtype == config::Precision::Float32);
}

TEST_CASE("accelerate: wrapping, prefetch, loading and offload are those of the engine", "[dialects]") {
  Files files;
  const config::Parallel parallel = load_file(files, "a.yaml", R"(distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: SIZE_BASED_WRAP
  fsdp_min_num_params: 2000
  fsdp_backward_prefetch: BACKWARD_POST
  fsdp_forward_prefetch: true
  fsdp_offload_params: true
  fsdp_cpu_ram_efficient_loading: true
  fsdp_sync_module_states: true
)",
                                              {"--model.init_from=folder"})
                                        .config.parallel;
  CHECK(parallel.wrap == config::Wrap::SizeBased);
  CHECK(parallel.min_num_params == 2000);
  CHECK(parallel.backward_prefetch == config::BackwardPrefetch::Post);
  CHECK(parallel.forward_prefetch == 1);
  CHECK(parallel.offload);
  CHECK(parallel.cpu_ram_efficient_loading);
  CHECK(parallel.sync_module_states);
  const auto classes = [&](const std::string& list) {
    return load_file(files, "b.yaml",
                     "distributed_type: FSDP\nfsdp_config:\n  fsdp_min_num_params: 7\n"
                     "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
                     "  fsdp_transformer_layer_cls_to_wrap: " +
                         list + "\n")
        .config.parallel.transformer_layer_cls_to_wrap;
  };
  CHECK(classes("LlamaDecoderLayer") == "");                                         // the model's own blocks
  CHECK(classes("'LlamaDecoderLayer, LlamaMLP'") == "LlamaDecoderLayer, LlamaMLP");  // judged by the model
}

TEST_CASE("accelerate: keys of fsdp_config may stand without fsdp_, as pages write min_num_param", "[dialects]") {
  Files files;
  const config::Parallel parallel = load_file(files, "a.yaml", R"(distributed_type: FSDP
fsdp_config:
  fsdp_wrap_policy: SIZE_BASED_WRAP
  min_num_param: 2000
  offload_params: true
)")
                                        .config.parallel;
  CHECK(parallel.wrap == config::Wrap::SizeBased);
  CHECK(parallel.min_num_params == 2000);
  CHECK(parallel.offload);
  CHECK_THAT(error_of_file("b.yaml", "distributed_type: FSDP\nfsdp_config:\n  min_num_parameters: 2000\n"),
             Catch::StartsWith("b.yaml:3: unknown key min_num_parameters of accelerate"));
}

TEST_CASE("accelerate: a key of a wrap policy that sets nothing says why, unless it asks for nothing", "[dialects]") {
  struct Case {
    const char *keys, *became;
    size_t notes;
  };
  const std::vector<Case> cases{
      {"{fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_min_num_params: 7}",
       "fsdp_min_num_params: 7 → nothing: it is for SIZE_BASED_WRAP, and the policy is TRANSFORMER_BASED_WRAP "
       "(a.yaml:2)",
       1},
      {"{fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_min_num_params: 0}",
       "fsdp_min_num_params: 0 → nothing to set (a.yaml:2)", 0},
      {"{fsdp_auto_wrap_policy: size_based_wrap, fsdp_min_num_params: 7, fsdp_transformer_layer_cls_to_wrap: T5Block}",
       "fsdp_transformer_layer_cls_to_wrap: T5Block → nothing: it is for TRANSFORMER_BASED_WRAP, and the policy is "
       "size_based_wrap (a.yaml:2)",
       1},
      {"{fsdp_wrap_policy: NO_WRAP, fsdp_transformer_layer_cls_to_wrap: [Embedding]}",
       "fsdp_transformer_layer_cls_to_wrap: [Embedding] → nothing: it is for TRANSFORMER_BASED_WRAP, and the policy is "
       "NO_WRAP (a.yaml:2)",
       1},
      {"{fsdp_wrap_policy: NO_WRAP, fsdp_transformer_layer_cls_to_wrap: []}",
       "fsdp_transformer_layer_cls_to_wrap: [] → nothing to set (a.yaml:2)", 0},
      {"{fsdp_transformer_layer_cls_to_wrap: BertLayer}",
       "fsdp_transformer_layer_cls_to_wrap: BertLayer → nothing: no model here has this class; the blocks of the one "
       "that is trained are wrapped (a.yaml:2)",
       1},
      {"{fsdp_transformer_layer_cls_to_wrap: T5Block}",
       "fsdp_transformer_layer_cls_to_wrap: T5Block → nothing to set (a.yaml:2)", 0},
  };
  for (const Case& each : cases) {
    INFO(each.keys);
    Files files;
    const config::Loaded loaded =
        load_file(files, "a.yaml", "distributed_type: FSDP\nfsdp_config: " + std::string(each.keys) + "\n");
    CHECK(has(files.relative(loaded.became), each.became));
    CHECK(loaded.notes.size() == each.notes);
    CHECK(loaded.config.parallel.transformer_layer_cls_to_wrap.empty());
  }
}

TEST_CASE("accelerate: numbers, FSDP2's keys and other distributed types say the same", "[dialects]") {
  struct Case {
    const char* yaml;
    Strategy strategy;
  };
  const std::vector<Case> cases{
      {"distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 1}\n", Strategy::FullShard},
      {"distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 3}\n", Strategy::NoShard},
      {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true}\n",
       Strategy::FullShard},
      {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: no}\n",
       Strategy::ShardGradOp},
      {"distributed_type: FSDP\nfsdp_config: {fsdp_reshard_after_forward: SHARD_GRAD_OP}\n", Strategy::ShardGradOp},
      {"distributed_type: MULTI_CPU\nfsdp_config: {}\ndeepspeed_config: {}\n", Strategy::NoShard},
      {"{\"compute_environment\": \"LOCAL_MACHINE\",\n \"distributed_type\": \"MULTI_GPU\"}", Strategy::NoShard},
  };
  for (const Case& each : cases) {
    INFO(each.yaml);
    Files files;
    CHECK(load_file(files, "a.yaml", each.yaml).config.parallel.strategy == each.strategy);
  }
}

TEST_CASE("accelerate: both state dicts are checkpoints of ours", "[dialects]") {
  Files files;
  const std::string full =
      with_line(kAccelerateSample, "fsdp_state_dict_type", "fsdp_state_dict_type: FULL_STATE_DICT");
  CHECK(load_file(files, "a.yaml", kAccelerateSample).config.checkpoint.state_dict == config::StateDict::Sharded);
  CHECK(load_file(files, "b.yaml", full).config.checkpoint.state_dict == config::StateDict::Full);
  CHECK(error_of_file("a.yaml",
                      with_line(kAccelerateSample, "fsdp_state_dict_type", "fsdp_state_dict_type: LOCAL_STATE_DICT")) ==
        "a.yaml:12: fsdp_state_dict_type is 'LOCAL_STATE_DICT'; use SHARDED_STATE_DICT, FULL_STATE_DICT (did you mean "
        "FULL_STATE_DICT?)");
}

TEST_CASE("accelerate: what cannot be is refused with file, line and what would be right", "[dialects]") {
  struct Case {
    std::string yaml, message;
  };
  const std::vector<Case> cases{
      {with_line(kAccelerateSample, "fsdp_sharding_strategy", "fsdp_shardin_strategy: FULL_SHARD"),
       "a.yaml:11: unknown key fsdp_shardin_strategy of accelerate; did you mean fsdp_sharding_strategy?"},
      {with_line(kAccelerateSample, "fsdp_sharding_strategy", "fsdp_sharding_strategy: FULL_SHRAD"),
       "a.yaml:11: fsdp_sharding_strategy is 'FULL_SHRAD'; use FULL_SHARD, 1, SHARD_GRAD_OP, 2, NO_SHARD, 3, "
       "HYBRID_SHARD, 4, HYBRID_SHARD_ZERO2, 5 (did you mean FULL_SHARD?)"},
      {with_line(kAccelerateSample, "tpu_use_cluster", "tpu_use_cluster: true"),
       "a.yaml:24: tpu_use_cluster is true: there is no backend for TPU and XLA here; leave it out or set it to false"},
      {"distributed_type: XLA\nnum_processes: 8\n",
       "a.yaml:1: distributed_type is XLA: FSDP, DEEPSPEED, MULTI_GPU, MULTI_CPU and NO are offered here"},
      {"distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_reshard_after_forward: "
       "false\n",
       "a.yaml:4: fsdp_reshard_after_forward false contradicts fsdp_sharding_strategy FULL_SHARD (a.yaml:3): "
       "parallel.strategy would be full_shard and shard_grad_op; keep one"},
      {"distributed_type: FSDP\nfsdp_config:\n  fsdp_cpu_ram_efficient_loading: true\n  fsdp_sync_module_states: "
       "false\n",
       "a.yaml:4: fsdp_sync_module_states false contradicts fsdp_cpu_ram_efficient_loading true (a.yaml:3)"},
      {"distributed_type: FSDP\nfsdp_config:\n  fsdp_min_num_params: 7\n  fsdp_transformer_layer_cls_to_wrap: "
       "LlamaDecoderLayer\n",
       "a.yaml:3: fsdp_min_num_params 7 contradicts fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer (a.yaml:4): "
       "one is for SIZE_BASED_WRAP, the other for TRANSFORMER_BASED_WRAP; keep one"},
      {"distributed_type: FSDP\nnum_processes: 3\nnum_machines: 2\n",
       "a.yaml:2: num_processes is 3, which does not divide among num_machines 2 (a.yaml:3)"},
      {"distributed_type: FSDP\nparallelism_config:\n  parallelism_config_tp_size: 2\n  parallelism_config_sp_size: "
       "4\n",
       "a.yaml:4: parallelism_config_sp_size is 4: sequence parallelism is not offered; use 1"},
      {"distributed_type: FSDP\ndebug: false\ndebug: true\n",
       "a.yaml:3: debug was already given at a.yaml:2; keep one"},
      {"distributed_type: FSDP\nfp8_config: {backend: TE}\n",
       "a.yaml:2: fp8_config.backend is TE: training in 8 bits is float8.recipe here; use mixed_precision bf16 with "
       "it"},
  };
  for (const Case& each : cases) {
    INFO(each.yaml);
    Files files;
    const std::string path = files.add("a.yaml", each.yaml);
    CHECK(files.relative(config::error_of([&] { load({"--config", path}); })) == each.message);
  }
}

TEST_CASE("accelerate: the launcher hears of machines and ranks, and the environment of a pod goes first",
          "[dialects]") {
  Files files;
  const std::string path = files.add("two.yaml", R"(distributed_type: FSDP
num_machines: 2
num_processes: 4
machine_rank: 1
main_process_ip: 10.0.0.7
main_process_port: 29501
rdzv_backend: static
gpu_ids: 0,1
)");
  REQUIRE(world_of(path));
  CHECK(world_of(path)->nodes == 2);
  CHECK(world_of(path)->ranks_per_node == 2);
  CHECK_FALSE(world_of(files.add("any.yaml", "distributed_type: FSDP\nnum_processes: -1\n")));
  CHECK(accelerate_files({"--config", files.add("ours.yaml", "training: {steps: 3}\n"), "--config", path}) ==
        Lines{path});
  const LauncherAdvice alone = advice_of(path, {});
  CHECK(alone.flags == Lines{"--nnodes=2", "--nproc-per-node=2", "--node-rank=1", "--master-addr=10.0.0.7",
                             "--master-port=29501", "--rdzv-backend=static"});
  CHECK(alone.environment == Environment{{"CUDA_VISIBLE_DEVICES", "0,1"}});
  CHECK(alone.notes.empty());

  const LauncherAdvice in_pod = advice_of(path, {{"PET_NNODES", "2"}, {"RANK", "0"}, {"MASTER_ADDR", "job-master-0"}});
  CHECK(in_pod.flags == Lines{"--nproc-per-node=2", "--master-port=29501", "--rdzv-backend=static"});
  CHECK(files.relative(in_pod.notes) ==
        Lines{"two.yaml:4: machine_rank 1 is not used: the environment has RANK=0",
              "two.yaml:5: main_process_ip 10.0.0.7 is not used: the environment has MASTER_ADDR=job-master-0"});
  CHECK(files.relative(config::error_of([&] { advice_of(files.add("ours.yaml", "training: {steps: 3}\n"), {}); })) ==
        "ours.yaml: a file of `accelerate config` has distributed_type; this has none");
}

TEST_CASE("accelerate: errors of the launcher name the file's keys, but for what a flag or the environment says",
          "[dialects]") {
  const auto words = [](const std::string& error, const Lines& given = {}, const Environment& environment = {}) {
    return in_words_of("a.yaml", error, given, environment);
  };
  CHECK(words("--node-rank=5 contradicts --nnodes=2: it must be less") ==
        "a.yaml: machine_rank=5 contradicts num_machines=2: it must be less");
  CHECK(words("--node-rank=5 contradicts --nnodes=2: it must be less", {"--node_rank", "5"}) ==
        "a.yaml: --node-rank=5 contradicts num_machines=2: it must be less");
  CHECK(words("PET_NODE_RANK (or RANK) is not set, though --nnodes=2 is") ==
        "a.yaml: machine_rank is not set, though num_machines=2 is");
  CHECK(words("MASTER_ADDR=a is set, so MASTER_PORT must be set too", {}, {{"MASTER_ADDR", "a"}}) ==
        "a.yaml: MASTER_ADDR=a is set, so main_process_port must be set too");
  CHECK(words("launch: no command to run") == "launch: no command to run");
}

TEST_CASE("accelerate: its file lies where it puts it", "[dialects]") {
  CHECK(default_accelerate_path({{"HOME", "/home/me"}}) ==
        "/home/me/.cache/huggingface/accelerate/default_config.yaml");
  CHECK(default_accelerate_path({{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "/cache"}}) ==
        "/cache/huggingface/accelerate/default_config.yaml");
  CHECK(default_accelerate_path({{"HF_HOME", "/hf"}, {"XDG_CACHE_HOME", "/cache"}}) ==
        "/hf/accelerate/default_config.yaml");
}

TEST_CASE("accelerate: keys that its releases since 2024 wrote beside FSDP's", "[dialects]") {
  Files files;
  const config::Loaded loaded =
      load_file(files, "a.yaml", "distributed_type: MULTI_GPU\ndowncast_bf16: 'yes'\nmixed_precision: bf16\n");
  CHECK(loaded.config.parallel.param_dtype == config::Precision::BFloat16);
  CHECK(files.relative(loaded.notes) ==
        std::vector<std::string>{"a.yaml:2: downcast_bf16 yes changes nothing: it is for TPUs alone"});
  CHECK(load_file(files, "a.yaml", "distributed_type: FSDP\ndowncast_bf16: 'no'\nipex_config: {}\n").notes.empty());
  CHECK(load_file(files, "a.yaml", "distributed_type: FSDP\nipex_config:\n  ipex: false\n").notes.empty());
  CHECK(load_file(files, "a.yaml", "distributed_type: TP\ntp_config:\n  tp_size: 4\n").config.parallel.tensor == 4);
}

}  // namespace
}  // namespace trainyard::dialects
