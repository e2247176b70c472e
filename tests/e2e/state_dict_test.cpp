// Forms of a checkpoint as a user switches them, and what a run begins with: weights that only rank 0 has, parameters
// that were frozen before.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "failure.h"
#include "token_file.h"

namespace trainyard::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

Ended done(const Words& words) {
  Ended ended = run({words, {}, seconds(60)});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

/// Two ranks that nobody launched, each as in a pod of its own: alone there, in a folder of its own.
std::vector<Ended> train_in(const std::vector<fs::path>& folders, const Words& words) {
  const int port = free_port(), world = static_cast<int>(folders.size());
  std::vector<std::unique_ptr<Process>> processes;
  for (int rank = 0; rank < world; ++rank) {
    auto environment = rank_environment(rank, world, port);
    environment["LOCAL_RANK"] = "0", environment["LOCAL_WORLD_SIZE"] = "1";
    processes.push_back(std::make_unique<Process>(Command{
        Words{"env", "-C", folders[static_cast<size_t>(rank)].string()} + trainyard(words), environment, seconds(60)}));
  }
  std::vector<Ended> ended;
  for (const auto& process : processes) ended.push_back(process->wait());
  return ended;
}

}  // namespace

TEST_CASE(
    "cpu_ram_efficient_loading: only rank 0 needs the weights of a Hugging Face folder, and PyTorch's run follows") {
  if (test_data().empty()) return skip("no reference data");
  const fs::path model = test_data() / "parity/llama3-tiny";
  const TemporaryFolder with_weights, without, metrics;
  for (const TemporaryFolder* const folder : {&with_weights, &without}) {
    fs::create_directory(*folder / "model");
    fs::copy_file(model / "config.json", *folder / "model/config.json");
  }
  fs::copy_file(model / "model.safetensors", with_weights / "model/model.safetensors");
  const nlohmann::json training = nlohmann::json::parse(std::ifstream(model / "golden.json")).at("training");
  const Words words{"train",
                    "--model.init_from",
                    "model",
                    "--parallel.cpu_ram_efficient_loading",
                    "true",
                    "--data.tokens",
                    (model / "golden.safetensors").string(),
                    "--training.steps",
                    "30",
                    "--optimizer.lr",
                    fmt::format("{}", training.at("peak_lr").get<double>()),
                    "--optimizer.warmup_steps",
                    "5",
                    "--metrics.dir",
                    metrics.path().string(),
                    "--checkpoint.enabled",
                    "false",
                    "--device.threads",
                    "1"};
  for (const Ended& ended : train_in({without.path(), with_weights.path()}, words))  // each with a log of its own
    check_failure(ended, 2, {"rank 0: model: no weights that are read here"});
  for (const Ended& ended : train_in({with_weights.path(), without.path()}, words)) {
    INFO(ended.all());
    REQUIRE(ended.code == 0);
  }
  const std::vector<double> losses = column(json_lines(metrics / "metrics.jsonl"), "loss");
  REQUIRE(losses.size() == 30);
  for (size_t step = 0; step < losses.size(); ++step)
    CHECK(losses[step] == Approx(training.at("loss").at(step).get<double>()).epsilon(1e-5));
}

TEST_CASE("broadcast_from_rank0: a run goes on, with the same losses, where only rank 0 reaches the checkpoint") {
  const SmallJob job;
  const std::string form = GENERATE("sharded", "full");
  done(on_ranks(2, job.train(6, {"--checkpoint.interval", "3", "--checkpoint.state_dict", form})));
  const TemporaryFolder with, without, metrics;
  fs::rename(job.checkpoints() / "step-3", with / "saved");
  const Words go_on = job.train(6, {"--checkpoint.resume", "saved", "--broadcast_from_rank0", "--checkpoint.enabled",
                                    "false", "--metrics.dir", metrics.path().string()});
  for (const Ended& ended : train_in({without.path(), with.path()}, go_on)) {
    CHECK(ended.code == 2);
    CHECK_THAT(ended.err, Catch::Contains("saved"));
  }
  for (const Ended& ended : train_in({with.path(), without.path()}, go_on)) {
    INFO(ended.all());
    REQUIRE(ended.code == 0);
  }
  std::vector<double> expected = job.losses();
  expected.erase(expected.begin(), expected.begin() + 3);
  CHECK(column(json_lines(metrics / "metrics.jsonl"), "loss") == expected);
}

TEST_CASE("state dict: shards that were swapped are found by whoever takes weights from them, each of them by verify") {
  const SmallJob job;
  done(on_ranks(2, job.train(2)));
  const fs::path saved = job.checkpoints() / "step-2", out = job.folder() / "out";
  const auto shard = [&](int rank) {
    return saved / fmt::format("shard-0000{}-model-00001-of-00001.safetensors", rank);
  };
  fs::rename(shard(1), saved / "aside");
  fs::rename(shard(2), shard(1));
  fs::rename(saved / "aside", shard(2));
  const auto failed = [](const Words& words) { return run({words, {}, seconds(60)}); };
  check_failure(failed(trainyard({"checkpoint", "convert", saved.string(), "--output", out.string()})), 2,
                {"damaged: ", "shard-00001-model"});
  CHECK_FALSE(fs::exists(out));
  const Words from_it = job.train(4, {"--model.init_from", saved.string(), "--model.config", "", "--checkpoint.dir",
                                      (job.folder() / "other").string()});
  check_failure(failed(on_ranks(1, from_it)), 2, {"damaged: ", "shard-00001-model"});
  CHECK(failed(on_ranks(2, from_it)).code == 2);
  const Ended verified = failed(trainyard({"checkpoint", "verify", job.checkpoints().string()}));
  CHECK(verified.code == 2);
  CHECK_THAT(verified.out, Catch::Contains("shard-00001-model") && Catch::Contains("shard-00002-model"));
}

TEST_CASE("state dict: a head that differs from the embedding is trained, saved, resumed and exported, whatever config.json says") {
  const SmallJob job;
  nlohmann::json config = job.config();
  config["tie_word_embeddings"] = false;
  write_text(job.folder() / "config.json", config.dump());
  done(on_ranks(1, job.train(1)));
  const fs::path given = job.folder() / "given", saved = job.folder() / "saved", out = job.folder() / "out";
  done(trainyard({"checkpoint", "export", job.checkpoints().string(), "--output", given.string()}));
  config["tie_word_embeddings"] = true;
  write_text(given / "config.json", config.dump());

  const Words from{"--model.init_from", given.string(), "--model.config",    "",
                   "--checkpoint.dir",  saved.string(), "--optimizer.decay", "constant"};
  const Words whole{"--metrics.dir", (job.folder() / "whole").string(), "--checkpoint.enabled", "false"};
  const Ended told = done(on_ranks(1, job.train(4, from + whole)));
  CHECK_THAT(told.all(), Catch::Contains("lm_head.weight differs from model.embed_tokens.weight and is used"));
  const Words parts = from + Words{"--metrics.dir", (job.folder() / "parts").string()};
  done(on_ranks(1, job.train(2, parts)));
  done(on_ranks(1, job.train(4, parts)));
  CHECK(column(json_lines(job.folder() / "parts/metrics.jsonl"), "loss") ==
        column(json_lines(job.folder() / "whole/metrics.jsonl"), "loss"));

  done(trainyard({"checkpoint", "export", saved.string(), "--output", out.string()}));
  const auto exported = nlohmann::json::parse(std::ifstream(out / "config.json"));
  CHECK(exported.at("tie_word_embeddings") == false);
  done(trainyard({"checkpoint", "convert", given.string(), "--output", (job.folder() / "again").string()}));
  CHECK(nlohmann::json::parse(std::ifstream(job.folder() / "again/config.json")).at("tie_word_embeddings") == false);
}

TEST_CASE("state dict: a distributed checkpoint whose last file is missing is no smaller model") {
  const SmallJob job;
  done(on_ranks(1, job.train(1)));
  const fs::path dcp = job.folder() / "dcp", out = job.folder() / "out";
  done(trainyard({"checkpoint", "convert", job.checkpoints().string(), "--format", "dcp", "--ranks", "2", "--output",
                  dcp.string()}));
  for (const auto& entry : fs::directory_iterator(dcp))
    if (entry.path().filename().string().starts_with("shard-00002")) fs::remove(entry.path());
  const char* const asks = "is the file of a rank missing?";
  check_failure(run({trainyard({"checkpoint", "convert", dcp.string(), "--output", out.string()})}), 2, {asks});
  CHECK_FALSE(fs::exists(out));
  check_failure(run({on_ranks(1, job.train(2, {"--model.init_from", dcp.string(), "--model.config", "",
                                               "--checkpoint.enabled", "false"}))}),
                2, {asks});
}

TEST_CASE("state dict: sharded on the way and full at the end, and the full one is a model, and resumes elsewhere") {
  const SmallJob job, straight;
  const Words more{"--checkpoint.interval", "2", "--optimizer.decay", "constant"};
  done(on_ranks(2, straight.train(6, more)));
  done(on_ranks(2, job.train(4, more + Words{"--checkpoint.final_state_dict", "FULL_STATE_DICT"})));
  CHECK(fs::exists(job.checkpoints() / "step-2/shard-00002-model-00001-of-00001.safetensors"));
  const fs::path last = job.checkpoints() / "step-4";
  for (const char* const file : {"config.json", "model.safetensors", "optimizer.safetensors"})
    CHECK(fs::exists(last / file));

  std::vector<int32_t> ids;
  for (int i = 0; i < 64; ++i) ids.push_back(32 + i);
  const std::string tokens = (job.folder() / "tokens.safetensors").string();
  write_text(tokens, token_file("input_ids", {2, 32}, ids));
  // Without the manifest it is a Hugging Face folder as any other.
  fs::create_directory(job.folder() / "model");
  for (const char* const file : {"config.json", "model.safetensors"})
    fs::copy_file(last / file, job.folder() / "model" / file);
  CHECK(done(trainyard({"evaluate", "--model", (job.folder() / "model").string(), "--tokens", tokens})).out ==
        done(trainyard({"evaluate", "--checkpoint", last.string(), "--tokens", tokens})).out);

  done(on_ranks(2, job.train(6, more + Words{"--parallel.strategy", "NO_SHARD"})));
  REQUIRE(job.losses().size() == 6);
  for (size_t step = 0; step < 6; ++step) CHECK(job.losses()[step] == Approx(straight.losses()[step]).epsilon(1e-5));
}

TEST_CASE("state dict: the last step's model alone is enough to evaluate, and training says what it lacks") {
  const SmallJob job;
  done(trainyard(job.train(3, {"--checkpoint.final_model_only", "true"})));
  CHECK_FALSE(fs::exists(job.checkpoints() / "step-3/shard-00001-optim-00001-of-00001.safetensors"));
  check_failure(run({trainyard(job.train(5)), {}, seconds(60)}), 2,
                {"step-3", "without its optimizer (checkpoint.final_model_only)", "checkpoint.exclude optimizer"});
  done(trainyard(job.train(5, {"--checkpoint.exclude", "optimizer"})));
  CHECK(job.metrics().size() == 5);
}

TEST_CASE("freeze: what was frozen when a checkpoint was saved is trained from it on, and a line says how") {
  const SmallJob job;
  done(on_ranks(2, job.train(3, {"--training.freeze", "*.mlp.*"})));
  const Ended resumed = done(on_ranks(2, job.train(6)));
  CHECK_THAT(resumed.err,
             Catch::Contains("step-3: holds no optimizer state of model.layers.0.mlp.") &&
                 Catch::Contains(" and 5 more parameters, frozen when it was saved; the moments begin at zero"));
  CHECK(job.losses().size() == 6);
  CHECK(job.losses().back() < job.losses().at(2));
  const Ended again = done(on_ranks(2, job.train(7)));
  CHECK_THAT(again.err, !Catch::Contains("no optimizer state"));
}

}  // namespace trainyard::test
