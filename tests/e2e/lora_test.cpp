// Adapters (LoRA) as a user trains, resumes, exports and merges them.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <cstring>
#include <map>
#include <regex>

#include "base/files.h"
#include "failure.h"
#include "token_file.h"

namespace trainyard::test {
namespace {
namespace fs = std::filesystem;
using Catch::Contains;

Ended run_well(const Words& words) {
  Ended ended = run({words, {}});
  CAPTURE(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

/// A base of a few steps, and runs of two ranks that train adapters beside it.
class Adapting {
 public:
  explicit Adapting(const Words& sizes = {}) {
    run_well({trainyard(job_.train(3, sizes))});
    run_well({trainyard({"checkpoint", "export", job_.checkpoints().string(), "--output", base()})});
    fs::remove_all(job_.checkpoints());
    fs::remove(job_.folder() / "metrics.jsonl");
  }

  [[nodiscard]] std::string base() const { return path("base"); }
  [[nodiscard]] std::string path(const char* name) const { return (job_.folder() / name).string(); }
  [[nodiscard]] Words train(int steps, const Words& more = {}) const {
    return job_.train(steps, Words{"--model.config=", "--model.init_from", base(), "--lora.rank", "4", "--lora.alpha",
                                   "16", "--optimizer.decay", "constant", "--checkpoint.interval", "3"} +
                                 more);
  }
  [[nodiscard]] const SmallJob& job() const { return job_; }
  [[nodiscard]] std::vector<double> losses() const {
    auto losses = job_.losses();
    fs::remove(job_.folder() / "metrics.jsonl");
    return losses;
  }

 private:
  SmallJob job_;
};

/// The bytes of each tensor of a safetensors file.
std::map<std::string, std::string> tensors_of(const fs::path& file) {
  const std::string text = read_file(file);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, text.data(), sizeof(header_bytes));
  const size_t data = sizeof(header_bytes) + header_bytes;
  const auto header = nlohmann::json::parse(text.substr(sizeof(header_bytes), header_bytes));
  std::map<std::string, std::string> tensors;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = tensor.at("data_offsets").at(0), end = tensor.at("data_offsets").at(1);
    tensors[name] = text.substr(data + begin, end - begin);
  }
  return tensors;
}

/// What a run says of its memory, in KiB: what it had at most, and what its plan predicted.
struct Memory {
  double most, predicted;
};
Memory memory_of(const Ended& trained) {
  const std::regex said(R"(memory: peak ([0-9.]+) (KiB|MiB):.*; predicted ([0-9.]+) (KiB|MiB);)");
  std::smatch found;
  REQUIRE(std::regex_search(trained.out, found, said));
  const auto in_kib = [](const std::string& number, const std::string& unit) {
    return std::stod(number) * (unit == "MiB" ? 1024 : 1);
  };
  return {in_kib(found[1], found[2]), in_kib(found[3], found[4])};
}

double loss_of(const Ended& evaluated) {
  const size_t at = evaluated.out.find("loss");
  return std::stod(evaluated.out.substr(evaluated.out.find_first_of("0123456789", at)));
}

}  // namespace

TEST_CASE("lora: adapters train beside a base that stays, resume to the bit, and merge into what they computed",
          "[bit_equal]") {
  const Adapting run_of;
  const Words adapters{"--lora.target_modules", "all-linear", "--lora.dropout", "0.1"};
  const std::string text = "5 times 7 is 35.\n6 times 7 is 42.\n7 times 7 is 49.\n8 times 7 is 56.\n";
  const std::vector<int32_t> ids(text.begin(), text.begin() + 64);
  write_text(run_of.path("tokens.safetensors"), token_file("input_ids", {2, 32}, ids));
  const Words all = run_of.train(6, adapters + Words{"--validation.tokens", run_of.path("tokens.safetensors")});
  const Ended trained = run_well(on_ranks(2, all));
  CHECK_THAT(trained.out, Contains("adapters") && Contains("LoRA, rank 4, alpha 16, on down_proj, gate_proj, k_proj"));
  const auto records = run_of.job().metrics();
  const double validated = records.back().at("validation_loss");
  const auto losses = run_of.losses();
  REQUIRE(losses.size() == 6);
  CHECK(losses.back() < losses.front());

  const std::string tensors = run_well(trainyard({"checkpoint", "inspect", run_of.job().checkpoints().string()})).out;
  CHECK_THAT(tensors, Contains("model.layers.0.mlp.up_proj.lora_A.weight") && !Contains("embed_tokens"));

  fs::remove_all(run_of.job().checkpoints() / "step-6");
  const Ended resumed = run_well(on_ranks(2, all));
  CHECK_THAT(resumed.out, Contains("Resuming") && Contains("after step 3"));
  CHECK(run_of.losses() == std::vector<double>(losses.begin() + 3, losses.end()));

  run_well(trainyard({"checkpoint", "export", run_of.job().checkpoints().string(), "--output", run_of.path("peft")}));
  const auto config = nlohmann::json::parse(read_file(run_of.path("peft/adapter_config.json")));
  CHECK(config.at("r") == 4);
  CHECK(config.at("lora_alpha") == 16);
  CHECK(config.at("base_model_name_or_path") == run_of.base());
  CHECK_THAT(read_file(run_of.path("peft/adapter_model.safetensors")),
             Contains("base_model.model.model.layers.1.self_attn.o_proj.lora_B.weight"));
  run_well(trainyard({"checkpoint", "merge", run_of.job().checkpoints().string(), "--output", run_of.path("merged")}));
  run_well(trainyard(
      {"checkpoint", "merge", run_of.path("peft"), "--base", run_of.base(), "--output", run_of.path("same")}));
  CHECK(read_file(run_of.path("merged/model.safetensors")) == read_file(run_of.path("same/model.safetensors")));
  const auto evaluated = [&](const std::string& model) {
    return loss_of(run_well(trainyard({"evaluate", "--model", model, "--tokens", run_of.path("tokens.safetensors")})));
  };
  CHECK(evaluated(run_of.path("merged")) == Approx(validated).epsilon(1e-5));
  CHECK(evaluated(run_of.base()) != Approx(validated).epsilon(1e-3));
}

TEST_CASE("lora: the strategies train the same adapters") {
  const Adapting run_of;
  std::vector<std::vector<double>> losses;
  for (const Words& more : {Words{"--parallel.strategy", "full_shard"},
                            {"--parallel.strategy", "no_shard"},
                            {"--parallel.strategy", "shard_grad_op", "--activation_checkpointing.mode", "full"},
                            {"--parallel.context", "2", "--training.batch_size", "4"}}) {
    fs::remove_all(run_of.job().checkpoints());
    run_well(on_ranks(2, run_of.train(4, more)));
    losses.push_back(run_of.losses());
    REQUIRE(losses.back().size() == 4);
    for (size_t step = 0; step < 4; ++step) CHECK(losses.back()[step] == Approx(losses.front()[step]).epsilon(1e-4));
  }
}

TEST_CASE("lora: a base in bf16 or NF4 is less memory, resumes to the bit, and merges into the base as it was",
          "[bit_equal]") {
  const Adapting run_of(
      {"--model.hidden_size", "64", "--model.intermediate_size", "128", "--model.heads", "8", "--model.kv_heads", "4"});
  const Words plain = run_of.train(6);
  const double in_float = memory_of(run_well(on_ranks(2, plain))).most;
  const auto losses = run_of.losses();
  double before = in_float;
  for (const auto& [dtype, tolerance] : {std::pair{"bf16", 2e-3}, {"nf4", 5e-2}}) {
    CAPTURE(dtype);
    fs::remove_all(run_of.job().checkpoints());
    const Words all = run_of.train(6, {"--lora.base_dtype", dtype});
    const Memory memory = memory_of(run_well(on_ranks(2, all)));
    CHECK(memory.most == memory.predicted);
    CHECK(memory.most < before);
    before = memory.most;
    const auto own = run_of.losses();
    REQUIRE(own.size() == 6);
    for (size_t step = 0; step < 6; ++step) CHECK(own[step] == Approx(losses[step]).epsilon(tolerance));
    CHECK(own != losses);
    fs::remove_all(run_of.job().checkpoints() / "step-6");
    run_well(on_ranks(2, all));
    CHECK(run_of.losses() == std::vector<double>(own.begin() + 3, own.end()));
  }
  const std::string checkpoint = run_of.job().checkpoints().string();
  run_well(trainyard({"checkpoint", "merge", checkpoint, "--output", run_of.path("merged")}));
  const auto base = tensors_of(run_of.path("base/model.safetensors")),
             merged = tensors_of(run_of.path("merged/model.safetensors"));
  REQUIRE(base.size() == merged.size());
  for (const auto& [name, bytes] : base) {
    CAPTURE(name);
    CHECK((merged.at(name) == bytes) ==
          (name.find("q_proj") == std::string::npos && name.find("v_proj") == std::string::npos));
  }
}

TEST_CASE("lora: adapters of a folder of PEFT's or of a checkpoint are what a run begins with") {
  const Adapting run_of;
  run_well(on_ranks(2, run_of.train(3)));
  const fs::path saved = run_of.path("saved");
  fs::rename(run_of.job().checkpoints(), saved);
  run_well(trainyard({"checkpoint", "export", saved.string(), "--output", run_of.path("peft")}));
  run_well(trainyard({"checkpoint", "merge", saved.string(), "--output", run_of.path("merged")}));
  fs::remove(run_of.job().folder() / "metrics.jsonl");
  const auto first_loss = [&](const Words& more) {
    fs::remove_all(run_of.job().checkpoints());
    run_well(on_ranks(2, run_of.train(1, more)));
    return run_of.losses().front();
  };
  const double expected = first_loss({"--model.init_from", run_of.path("merged")}), fresh = first_loss({});
  for (const std::string& from : {run_of.path("peft"), saved.string()})
    CHECK(first_loss({"--lora.init_from", from}) == Approx(expected).epsilon(1e-6));
  CHECK(first_loss({"--lora.init_from", run_of.path("peft"), "--parallel.cpu_ram_efficient_loading", "true"}) ==
        Approx(expected).epsilon(1e-6));
  CHECK(fresh != Approx(expected).epsilon(1e-4));
  // What is resumed needs no start any more.
  fs::rename(run_of.path("peft"), run_of.path("moved"));
  run_well(on_ranks(2, run_of.train(2, {"--lora.init_from", run_of.path("peft")})));

  const auto fails = [&](const Words& more, const std::string& says) {
    check_failure(run({trainyard(run_of.train(1, Words{"--checkpoint.dir", run_of.path("none")} + more))}), 2, {says});
  };
  const std::string moved = run_of.path("moved");
  fails({"--lora.init_from", moved, "--lora.rank", "8"}, "has rank 4, and lora.rank is 8; set it to 4");
  fails({"--lora.init_from", moved, "--lora.alpha", "8"},
        "by 4, and lora.alpha / lora.rank is 2; set lora.alpha to 16");
  fails({"--lora.init_from", moved, "--lora.target_modules", "q_proj,k_proj"},
        "has no model.layers.0.self_attn.k_proj.lora_A.weight, which lora.target_modules asks for");
  fails({"--lora.init_from", moved, "--lora.target_modules", "q_proj"},
        "has 8 tensors, and this run's adapters are 4; name all its layers in lora.target_modules");
  fails({"--lora.init_from", run_of.path("peft")}, "neither a checkpoint nor a folder with adapter_config.json");
}

TEST_CASE("lora: what does not fit is told in one line, and nothing is written") {
  const Adapting run_of;
  const auto fails = [&](const Words& words, const Words& says) { check_failure(run({trainyard(words)}), 2, says); };
  fails(run_of.train(1, {"--lora.target_modules", "q_prj"}),
        {"lora.target_modules: 'q_prj' is no linear layer of this model's blocks, did you mean 'q_proj'?"});
  fails(run_of.train(1, {"--model.init_from=", "--model.config", run_of.path("config.json")}),
        {"lora.rank", "no model.init_from is given"});
  fails(run_of.train(1, {"--training.freeze", "*"}), {"freezes all but the adapters; leave training.freeze out"});
  fails(run_of.train(1, {"--parallel.tensor", "2"}), {"adapters are not split by it; use 1"});
  fails(run_of.train(1, {"--checkpoint.state_dict", "full"}),
        {"use sharded, and `trainyard checkpoint export` or `merge`"});
  fails(run_of.train(1, {"--lora.rank", "0"}), {"lora.alpha", "lora.rank"});
  fails(
      run_of.train(1, {"--lora.base_dtype", "nf4"}),
      {"lora.base_dtype is nf4, but model.layers.0.self_attn.q_proj.weight is [32, 32], whose rows of 32 values are no "
       "whole blocks of 64; use bf16"});
  fails(run_of.train(1, {"--lora.base_dtype", "nf4", "--float8.recipe", "tensorwise"}),
        {"lora.base_dtype", "float8.recipe", "leave one out"});
  CHECK_FALSE(fs::exists(run_of.job().checkpoints()));

  run_well(trainyard(run_of.train(3)));
  const std::string saved = (run_of.job().checkpoints() / "step-3").string();
  fails(run_of.train(4, {"--lora.rank", "8"}), {"has adapters with lora.rank 4, and this run has 8"});
  fails(run_of.train(4, {"--lora.target_modules", "k_proj"}),
        {"lora.target_modules [\"q_proj\",\"v_proj\"]", "[\"k_proj\"]"});
  fails(run_of.job().train(4, {"--model.config=", "--model.init_from", run_of.base()}),
        {"holds adapters (LoRA) alone, and this run trains a whole model; set lora.rank to 4"});
  fails({"evaluate", "--checkpoint", saved, "--tokens", run_of.path("none")},
        {"holds adapters (LoRA) alone", "checkpoint merge"});
  fails({"checkpoint", "convert", saved, "--output", run_of.path("out")},
        {"holds adapters (LoRA) alone", "checkpoint merge"});
  fails({"checkpoint", "merge", run_of.base(), "--output", run_of.path("out")},
        {"neither a checkpoint nor a folder with adapter_config.json"});
  run_well(trainyard({"checkpoint", "export", saved, "--output", run_of.path("peft")}));
  auto config = nlohmann::json::parse(read_file(run_of.path("peft/adapter_config.json")));
  config["use_dora"] = true;
  write_text(run_of.path("peft/adapter_config.json"), config.dump());
  fails({"checkpoint", "merge", run_of.path("peft"), "--output", run_of.path("out")},
        {"adapter_config.json: use_dora is true, which is not read"});
  config["use_dora"] = false, config["base_model_name_or_path"] = "org/model";
  write_text(run_of.path("peft/adapter_config.json"), config.dump());
  fails({"checkpoint", "merge", run_of.path("peft"), "--output", run_of.path("out")},
        {"its base, 'org/model', is not there; name one with --base"});
  CHECK_FALSE(fs::exists(run_of.path("out")));

  fs::remove_all(run_of.job().checkpoints());
  run_well(trainyard(run_of.job().train(1, {"--model.config=", "--model.init_from", run_of.base()})));
  fails(run_of.train(4), {"is a checkpoint of a whole model, and this run trains adapters (lora.rank)"});
}

}  // namespace trainyard::test
