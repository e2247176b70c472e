// What people type first, as pages of other programs have it: files where those are looked for, their start scripts,
// their spelling of flags.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/files.h"
#include "failure.h"

namespace trainyard::test {
namespace {
namespace fs = std::filesystem;

using Catch::Contains;

Ended run_well(const Command& command) {
  const Ended ended = run(command);
  CAPTURE(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

/// Accelerate's folder with a file of `accelerate config`, or `trainyard config`.
class Home {
 public:
  explicit Home(const std::string& yaml) {
    fs::create_directories(file_.parent_path());
    write_text(file_, yaml);
  }
  [[nodiscard]] std::map<std::string, std::string> environment() const {
    return {{"HF_HOME", folder_.path().string()}};
  }
  [[nodiscard]] std::string file() const { return file_.string(); }

 private:
  TemporaryFolder folder_;
  fs::path file_ = folder_ / "accelerate" / "default_config.yaml";
};

TEST_CASE("pasted: launch takes the file that `config` wrote where none is named, and says so", "[e2e]") {
  const Home home("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP}\n");
  const SmallJob job;
  const auto launch = [&](const Words& flags, const Words& more = {}) {
    return Command{trainyard(Words{"launch"} + flags + job.train(1, Words{"--print-config"} + more)),
                   home.environment()};
  };
  const Ended taken = run_well(launch({}));
  CHECK_THAT(taken.err,
             Contains(home.file() + " is taken, as no --config_file is given; --no-accelerate leaves it out"));
  CHECK_THAT(taken.out, Contains("parallel.strategy shard_grad_op (" + home.file()));
  CHECK_THAT(run_well(launch({"--no_accelerate"})).all(), !Contains("shard_grad_op"));
  const std::string other = (job.folder() / "other.yaml").string();
  write_text(other, "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: NO_SHARD}\n");
  CHECK_THAT(run_well(launch({"--config_file", other})).all(), !Contains(home.file()));
  CHECK_THAT(run_well(launch({}, {"--config", other})).all(), !Contains(home.file()));
}

TEST_CASE("pasted: a run that names a file of ours is not changed by the file that `config` wrote", "[e2e]") {
  const Home home(
      "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP}\n");
  const SmallJob job;
  const std::string own = (job.folder() / "own.yaml").string();
  write_text(own, "training: {seed: 7}\n");
  const auto launch = [&](const Words& flags) {
    return run_well({trainyard(Words{"launch"} + flags + job.train(1, {"--config", own, "--print-config"})),
                     home.environment()})
        .all();
  };
  CHECK_THAT(launch({}), !Contains(home.file()) && !Contains("shard_grad_op") && !Contains("mixed_precision"));
  CHECK_THAT(launch({"--accelerate"}), Contains("parallel.strategy shard_grad_op (" + home.file()));
}

TEST_CASE("pasted: NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV shows each rank's communicator, interface and transport", "[e2e]") {
  const SmallJob job;
  const auto lines = [&](const char* subsystems) {
    const Ended ended = run_well({trainyard(Words{"launch", "--no-accelerate", "--nproc_per_node", "2"} +
                                            job.train(1, {"--checkpoint.resume", "never"})),
                                  {{"NCCL_DEBUG", "INFO"},
                                   {"NCCL_DEBUG_SUBSYS", subsystems},
                                   {"NCCL_SOCKET_IFNAME", "lo"}}});
    std::string found;
    for (const std::string& line : lines_of(ended.err))
      if (line.find("NCCL_DEBUG=INFO: ") != std::string::npos) found += line + "\n";
    return found;
  };
  const std::string init = lines("INIT,GRAPH,ENV"), net = lines("NET");
  CAPTURE(init, net);
  for (const int rank : {0, 1}) {
    const std::string interface = fmt::format(
        "NCCL_DEBUG=INFO: rank {} uses the network interface lo, address 127.0.0.1 (NCCL_SOCKET_IFNAME=lo)", rank);
    CHECK_THAT(init, Contains(interface));
    CHECK_THAT(net, Contains(interface) && !Contains("the communicator of"));
    const std::regex communicator(
        fmt::format("the communicator of rank {} of 2 is made: process [0-9]+, host [^ ]+, address 127.0.0.1; (shared "
                    "memory|TCP) to rank {}",
                    rank, 1 - rank));
    CHECK(std::regex_search(init, communicator));
  }
}

TEST_CASE("pasted: the FSDP2 tutorial's commands, one after another in a folder, train ten steps more each", "[e2e]") {
  const TemporaryFolder folder;
  const auto tutorial = [&](const std::string& flags) {
    return run_well({{"/bin/bash", "-c",
                      fmt::format("cd '{}' && '{}' launch --no-accelerate --nproc_per_node 2 train --model tutorial {}",
                                  folder.path().string(), trainyard({}).front(), flags)}})
        .all();
  };
  CHECK_THAT(tutorial(""), Contains("Training completed! 10 steps") && !Contains("Resuming"));
  CHECK_THAT(tutorial("--explicit-prefetching"),
             Contains("after step 10") && Contains("Training completed! 20 steps"));
  CHECK_THAT(tutorial("--mixed-precision"), Contains("after step 20") && Contains("Training completed! 30 steps"));
  CHECK_THAT(tutorial("--dcp-api"), Contains("Training completed! 10 steps") && !Contains("Resuming"));
  CHECK_THAT(tutorial("--dcp-api"), Contains("after step 10") && Contains("Training completed! 20 steps"));
  CHECK_THAT(tutorial("--dcp-api --checkpoint.resume auto"), Contains("Training already completed! Step 20 of 10."));
  CHECK(fs::exists(folder / "checkpoints/dtensor_api/step-30"));
  CHECK(fs::exists(folder / "checkpoints/dcp_api/step-20"));
}

/// The job on other data.
Words on_data(const SmallJob& job, int steps, const Words& data) {
  Words words = job.train(steps);
  const auto path = std::ranges::find(words, "--data.path");
  words.erase(path, path + 2);
  return words + data;
}

TEST_CASE("pasted: a folder that datasets wrote trains as the JSON lines of it do", "[e2e]") {
  const SmallJob job;
  fs::copy(in_repository("tests/unit/data/arrow/saved"), job.folder() / "saved", fs::copy_options::recursive);
  const std::string saved = (job.folder() / "saved").string(), lines = (job.folder() / "lines.jsonl").string();
  std::string text;
  for (int row = 0; row < 60; ++row)
    text += row % 17 == 3
                ? "{\"text\": \"\"}\n"
                : fmt::format("{{\"text\": \"row {} Grüße 日本 🙂 {}\"}}\n", row, std::string(row * 7 % 23, 'x'));
  write_text(lines, text);
  const auto losses_of = [&](const Words& data) {
    fs::remove_all(job.checkpoints());
    fs::remove(job.folder() / "metrics.jsonl");
    run_well({trainyard(on_data(job, 3, data))});
    return job.losses();
  };
  const auto losses = losses_of({"--dataset", saved + "/train", "--local_dataset"});
  CHECK(losses.size() == 3);
  CHECK(losses == losses_of({"--data.path", lines}));
  CHECK(losses == losses_of({"--data.path", saved + "/tra*"}));
  check_failure(run({trainyard(on_data(job, 1, {"--dataset", saved, "--local_dataset"}))}), 2,
                {"saved: holds the splits train, test; give one of them, such as " + saved + "/train"});
  check_failure(run({trainyard(on_data(job, 1, {"--data.path", saved + "/none*"}))}), 2,
                {"data.path", "no such file or folder"});
}

TEST_CASE("pasted: a TOML that names no tokenizer is told whose default is missing, and by which key", "[e2e]") {
  const TemporaryFolder folder;
  write_text(folder / "snippet.toml", "[training]\ndataset = \"embedded\"\n[checkpoint]\nenable = false\n");
  check_failure(run({{"/bin/bash", "-c",
                      fmt::format("cd '{}' && '{}' train --config snippet.toml", folder.path().string(),
                                  trainyard({}).front())}}),
                2, {"./tests/assets/tokenizer: no such tokenizer",
                    "No key names a tokenizer, so this path is the default of torchtitan (model.hf_assets_path); name "
                    "yours by that key or by data.tokenizer"});
}

TEST_CASE("pasted: a default file that cannot be used names itself and the way around it", "[e2e]") {
  const Home home("distributed_type: XLA\n");
  const SmallJob job;
  check_failure(run({trainyard(Words{"launch"} + job.train(1)), home.environment()}), 2,
                {home.file() + ":1: distributed_type is XLA", "--no-accelerate leaves it out"});
}

TEST_CASE("pasted: --fsdp and --fsdp_config before the command are those of the Trainer", "[e2e]") {
  const SmallJob job;
  const std::string json = (job.folder() / "fsdp.json").string();
  write_text(json, R"({"backward_prefetch": "backward_post"})");
  const Ended ended = run_well({trainyard(Words{"launch", "--no-accelerate", "--fsdp=shard_grad_op auto_wrap",
                                                "--fsdp_config", json, "--nproc_per_node", "2"} +
                                          job.train(1, {"--print-config"}))});
  CHECK_THAT(ended.out, Contains("shard_grad_op: true → parallel.strategy shard_grad_op (--fsdp)"));
  CHECK_THAT(ended.out, Contains("parallel.backward_prefetch backward_post (" + json + ":1)"));
  check_failure(run({trainyard({"launch", "--fsdp", "full_shard", "comm-bench"})}), 2,
                {"launch: --fsdp is for train, which is not what is started"});
}

/// A json as people write it beside the Trainer, with `more` in it.
std::string json_of_stage_3(const SmallJob& job, const std::string& more) {
  const std::string path = (job.folder() / "ds.json").string();
  write_text(path, R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto", "loss_scale": 0, "hysteresis": 2},
"optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
"zero_optimization": {"stage": 3, "overlap_comm": true, "contiguous_gradients": true, "reduce_bucket_size": "auto"},
"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
"gradient_clipping": "auto")" +
                       more + "}");
  return path;
}

TEST_CASE("pasted: DeepSpeed's stage 3 with auto beside the Trainer's flags trains as full_shard by our keys",
          "[e2e]") {
  const SmallJob theirs, ours;
  const std::string json = json_of_stage_3(theirs, "");
  const Ended ended = run_well({on_ranks(
      2, theirs.train(3, {"--deepspeed", json, "--per_device_train_batch_size", "2", "--gradient_accumulation_steps",
                          "2", "--learning_rate", "0.01", "--adam_beta2", "0.98", "--weight_decay", "0.1",
                          "--max_grad_norm", "0.5"}))});
  CHECK_THAT(ended.err, Contains("what tunes speed and memory alone changes nothing here"));
  run_well({on_ranks(2, ours.train(3, {"--parallel.strategy", "full_shard", "--training.accumulation_steps", "2",
                                       "--optimizer.betas", "0.9,0.98", "--optimizer.weight_decay", "0.1",
                                       "--optimizer.decayed_parameters", "all", "--optimizer.decay", "linear",
                                       "--optimizer.min_lr_ratio", "0", "--training.clip_grad_norm", "0.5"}))});
  REQUIRE(theirs.losses().size() == 3);
  CHECK(theirs.losses() == ours.losses());
}

TEST_CASE("pasted: a scheduler of DeepSpeed's json gives its rates, and three batch sizes are one too many", "[e2e]") {
  const SmallJob job;
  const std::string json = json_of_stage_3(
      job, R"(, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_min_lr": "auto",
"warmup_max_lr": "auto", "warmup_num_steps": 2, "warmup_type": "linear"}})");
  run_well({on_ranks(2, job.train(5, {"--deepspeed", json, "--learning_rate", "0.01"}))});
  const std::vector<double> rates = column(job.metrics(), "lr");
  REQUIRE(rates.size() == 5);
  const std::vector<double> of_deepspeed{0, 0, 0.005, 0.01, 0.02 / 3};
  for (size_t step = 0; step < rates.size(); ++step) CHECK(rates[step] == Approx(of_deepspeed[step]));

  const std::string sizes = (job.folder() / "sizes.json").string();
  write_text(sizes, "{\"train_batch_size\": 16, \"train_micro_batch_size_per_gpu\": 2,\n"
                    "\"gradient_accumulation_steps\": 2, \"zero_optimization\": {\"stage\": 1}}");
  const auto fails = [&](const Words& more, const Words& says) {
    check_failure(run({on_ranks(2, job.train(1, Words{"--deepspeed", sizes} + more))}), 2, says);
  };
  fails({}, {"training.global_batch_size is 16", "training.batch_size 2", "training.accumulation_steps 2", "2 ranks"});
  fails({"--gradient_accumulation_steps", "4"},
        {"gradient_accumulation_steps) is 2", "--gradient_accumulation_steps 4"});
  write_text(sizes, "{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"nvme\"}}}");
  fails({}, {sizes + ":1: zero_optimization.offload_param.device is nvme"});
}

TEST_CASE("pasted: Accelerate's file of DeepSpeed starts its ranks and shards by its stage", "[e2e]") {
  const SmallJob job;
  const std::string file = (job.folder() / "deepspeed.yaml").string();
  write_text(file, "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\n"
                   "deepspeed_config:\n  zero_stage: 3\n  gradient_clipping: 1.0\n  zero3_init_flag: true\n");
  const Ended ended = run_well({trainyard(Words{"launch", "--config_file", file} + job.train(1, {"--inspect"}))});
  CHECK_THAT(ended.out, Contains("mesh: replicate 1 x shard 2"));
  const Ended flags =
      run_well({trainyard(Words{"launch", "--no-accelerate", "--use_deepspeed", "--zero_stage", "3",
                                "--offload_param_device=cpu", "--gradient_clipping", "0.5", "--nproc_per_node", "2"} +
                          job.train(1, {"--print-config"}))});
  CHECK_THAT(flags.out, Contains("zero_stage: 3 → parallel.strategy full_shard (--zero_stage)") &&
                            Contains("offload_param_device: cpu → parallel.offload true (--offload_param_device)"));
  const std::string json = json_of_stage_3(job, "");
  CHECK_THAT(
      run_well({trainyard(Words{"launch", "--no-accelerate", "--deepspeed", json} + job.train(1, {"--print-config"}))})
          .out,
      Contains("zero_optimization.stage: 3 → parallel.strategy full_shard (" + json));
}

TEST_CASE("pasted: help shows the words that a flag takes", "[e2e]") {
  CHECK_THAT(run_well({trainyard({"evaluate", "--help"})}).out,
             Contains("--param-dtype fp32|bf16|fp16") && Contains("--device auto|cpu|cuda"));
  for (const char* const command : {"evaluate", "generate", "plan", "comm-bench", "launch", "checkpoint"}) {
    INFO(command);
    CHECK_THAT(run_well({trainyard({command, "--help"})}).out,
               !Contains("ENUM") && !Contains("->") && !Contains(":INT"));
  }
  const Words convert{"checkpoint", "convert", "--help"}, reshard{"checkpoint", "reshard", "--help"};
  for (const Words& words : {Words{"plan", "--help"}, convert, reshard})
    CHECK_THAT(run_well({trainyard(words)}).out, !Contains(":INT") && Contains(" N "));
  check_failure(run({trainyard({"plan", "--demo", "--world", "0"})}), 2,
                {"'0' is not a whole number from 1 to 1048576"});
  check_failure(run({trainyard({"launch", "-nnodes=1", "--nproc_per_node", "2", "train"})}), 2,
                {"unknown flag -nnodes, did you mean --nnodes?"});
  check_failure(run({trainyard({"evaluate", "--tokens", "x", "--param_dtype", "fp61"})}), 2,
                {"--param-dtype: 'fp61' is none of fp32, bf16, fp16"});
}

TEST_CASE("pasted: flags of every subcommand may have _ for -", "[e2e]") {
  const auto misses_a_file = [](const Words& words) {
    check_failure(run({trainyard(words)}), 2, {"nowhere"});  // and so has taken its flags
  };
  misses_a_file({"generate", "--model", "nowhere", "--prompt", "a", "--max_new_tokens", "3", "--top_p=0.5"});
  misses_a_file({"evaluate", "--model", "nowhere", "--tokens", "nowhere", "--param_dtype", "bf16"});
  misses_a_file({"tokenizer", "train", "--input", "nowhere", "--vocab_size", "300", "--output", "unwritten"});
  run_well({trainyard({"comm-bench", "--no_shared_memory", "--warmup_iters", "1", "--iters=1", "--maxbytes", "8"})});
  const SmallJob job;
  run_well({trainyard(job.train(1, {"--print_config"}))});
  run_well({trainyard({"plan", "--demo", "--ranks_per_node", "2", "--world", "4", "--json"})});
}

TEST_CASE("pasted: config check judges model and mesh, for the ranks that it is asked about", "[e2e]") {
  const auto check = [](const Words& more) {
    return run({trainyard(Words{"config", "check", "--data.path", "embedded", "--data.tokenizer", "bytes"} + more)});
  };
  const Ended sound = check({"--model.preset", "qwen3-0.6b", "--parallel.shard", "4", "--world", "8"});
  CHECK(sound.code == 0);
  CHECK_THAT(sound.out, Contains("sound for 8 ranks"));
  CHECK(check({"--model.preset", "qwen3-0.6b", "--parallel.shard", "4"}).code == 0);  // four ranks would do
  CHECK(check({"--model.preset", "qwen3-0.6b", "--parallel.strategy", "hybrid_shard"}).code == 0);
  check_failure(check({"--model.preset", "qwen3-0.7b"}), 2, {"qwen3-0.7b"});
  check_failure(check({"--model.preset", "qwen3-0.6b", "--model.heads", "7"}), 2, {"heads"});
  check_failure(check({"--model.preset", "qwen3-0.6b", "--parallel.shard", "3", "--world", "8"}), 2,
                {"--parallel.shard is 3, but 8 processes were started"});
  check_failure(check({"--model.preset", "qwen3-0.6b", "--parallel.transformer_layer_cls_to_wrap", "BertLayers"}), 2,
                {"BertLayers"});
}

/// torchtitan's checkout as far as its debug_model.toml looks into it, and our start script there.
class Checkout {
 public:
  Checkout() {
    fs::create_directories(folder_ / "tests/assets/c4_test");
    fs::copy(test_data() / "torchtitan_tokenizer", folder_ / "tests/assets/tokenizer");
    std::string lines;
    for (int line = 0; line < 400; ++line)
      lines += fmt::format("{{\"text\": \"Line {} of a text that is worth a few tokens.\", \"timestamp\": \"2019\", "
                           "\"url\": \"http://a/{}\"}}\n",
                           line, line);
    write_text(folder_ / "tests/assets/c4_test/data.json", lines);
  }
  /// run_train.sh in that folder.
  [[nodiscard]] Ended start(std::map<std::string, std::string> environment, const std::string& flags) const {
    environment.try_emplace("CONFIG_FILE", (test_data() / "torchtitan/v0.2.2-llama3-debug_model.toml").string());
    environment["TRAINYARD"] = trainyard({}).front();
    environment["HF_HOME"] = folder_.path().string();
    const std::string line = fmt::format("cd '{}' && '{}' {}", folder_.path().string(),
                                         in_repository("run_train.sh").string(), flags);
    return run({{"/bin/bash", "-c", line}, std::move(environment)});
  }
  [[nodiscard]] fs::path outputs() const { return folder_ / "outputs"; }
  [[nodiscard]] std::string add(const std::string& name, const std::string& text) const {
    write_text(folder_ / name, text);
    return (folder_ / name).string();
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("pasted: torchtitan's debug_model.toml trains with its c4_test by run_train.sh, and flags win", "[e2e]") {
  if (!fs::exists(test_data() / "torchtitan")) return skip("no torchtitan/ in the reference data");
  const Checkout checkout;
  const Ended ended = checkout.start(
      {{"NGPU", "2"}}, "--training.steps=3 --training.seq_len=32 --training.local_batch_size=1 --device=cpu");
  CAPTURE(ended.all());
  REQUIRE(ended.code == 0);
  CHECK(json_lines(checkout.outputs() / "metrics.jsonl").size() == 3);
  CHECK_THAT(ended.out, Contains("2 ranks met"));
}

TEST_CASE("pasted: COMM_MODE is a dry run where it can be one, and else refused by name", "[e2e]") {
  if (!fs::exists(test_data() / "torchtitan")) return skip("no torchtitan/ in the reference data");
  const Checkout checkout;
  const Ended planned = checkout.start({{"NGPU", "128"}, {"COMM_MODE", "fake_backend"}}, "");
  CAPTURE(planned.all());
  CHECK(planned.code == 0);
  CHECK_THAT(planned.err, Contains("--comm.mode: nothing is started; this is the plan for 128 ranks of h100"));
  CHECK_THAT(planned.out, Contains("llama, 6 layers, hidden 256"));
  CHECK_FALSE(fs::exists(checkout.outputs()));
  check_failure(checkout.start({{"COMM_MODE", "local_tensor"}}, ""), 2, {"comm.mode is local_tensor", "fake_backend"});
  check_failure(checkout.start({{"TRAIN_FILE", "my.train"}}, ""), 2, {"-m my.train"});
  const Ended estimated = checkout.start({{"NGPU", "4"}}, "--memory_estimation.enabled");
  CHECK(estimated.code == 0);
  const std::string guide = checkout.add("16.toml", "[training]\nmicro_batch_size = 1\nmax_steps = 10000\n");
  const Ended of_guide = checkout.start({{"COMM_MODE", "fake_backend"}, {"CONFIG_FILE", guide}}, "");
  CAPTURE(of_guide.all());
  CHECK(of_guide.code == 0);  // the script's --training.steps goes before the file's max_steps
  CHECK_THAT(estimated.err, Contains("the plan for 4 ranks"));
}

TEST_CASE("pasted: a seed checkpoint is step 0, from which any number of ranks trains as from the seed", "[e2e]") {
  const SmallJob plain, seeded;
  run_well({trainyard(plain.train(2))});
  const Ended ended = run_well({trainyard(seeded.train(2, {"--checkpoint.create_seed_checkpoint"}))});
  CHECK_THAT(ended.out, Contains("step 0, nothing is trained"));
  CHECK(saved_in(seeded.checkpoints()) == std::vector<std::string>{"latest", "step-0"});
  run_well({trainyard(seeded.train(2, {"--checkpoint.create_seed_checkpoint"}))});  // which is there already
  const Ended resumed = run_well({trainyard(seeded.train(2, {"--model.seed", "77"}))});
  CHECK_THAT(resumed.out, Contains("after step 0"));
  CHECK(seeded.losses() == plain.losses());
  check_failure(run({trainyard(seeded.train(2, {"--checkpoint.create_seed_checkpoint"}))}), 2,
                {"checkpoint.create_seed_checkpoint is true", "step 2"});
}

TEST_CASE("pasted: --validation_freq alone validates on a share of the data that is the same on any ranks", "[e2e]") {
  std::vector<double> losses;
  for (const int ranks : {1, 2}) {
    const SmallJob job;
    // As many rows a step on any number of ranks.
    const Ended ended = run_well({on_ranks(
        ranks, job.train(4, {"--validation_freq", "2", "--training.batch_size", ranks == 1 ? "2" : "1"}))});
    CHECK_THAT(ended.out, Contains("sequences, the end of the training data (validation.split 0.05)"));
    for (const auto& record : job.metrics())
      if (record.contains("validation_loss") && record.at("validation_loss").is_number())
        losses.push_back(record.at("validation_loss").get<double>());
  }
  REQUIRE(losses.size() == 4);
  CHECK(losses[0] == Approx(losses[2]).epsilon(1e-5));  // sums of other sizes round otherwise
  CHECK(losses[1] == Approx(losses[3]).epsilon(1e-5));
}

}  // namespace
}  // namespace trainyard::test
