// Who comes from PyTorch's tutorials runs their models with the flags that stand there: docs/first-models.md.
#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <regex>

#include "failure.h"
#include "numerics/mnist_files.h"
#include "numerics/parity_case.h"
#include "small_job.h"
#include "token_file.h"

namespace trainyard::test {
namespace {

/// The settings of the DDP example, three steps an epoch on two ranks.
struct MnistJob {
  TemporaryFolder folder;

  MnistJob() {
    write_images(folder.path(), 300, 60);
    write_text(folder / "config.json",
               R"({"model_type": "mnist", "conv1_channels": 4, "conv2_channels": 8, "hidden_size": 16})");
  }

  [[nodiscard]] Ended train(const std::string& name, const Words& more, int ranks = 2) const {
    return run({on_ranks(ranks, Words{"train",
                                      "--model.config",
                                      (folder / "config.json").string(),
                                      "--data.images",
                                      folder.path().string(),
                                      "--validation.images",
                                      folder.path().string(),
                                      "--training.batch_size",
                                      "64",
                                      "--optimizer.lr",
                                      "0.01",
                                      "--optimizer.decay",
                                      "constant",
                                      "--parallel.strategy",
                                      "no_shard",
                                      "--metrics.line",
                                      "mnist",
                                      "--metrics.interval",
                                      "2",
                                      "--metrics.dir",
                                      (folder / name).string(),
                                      "--checkpoint.dir",
                                      (folder / name).string(),
                                      "--device.threads",
                                      "1"} +
                                    more)});
  }
  [[nodiscard]] std::vector<double> losses(const std::string& name) const {
    return column(json_lines(folder / name / "metrics.jsonl"), "loss");
  }
};

}  // namespace

TEST_CASE("first models: the FSDP2 example with its weights, ids and flags has PyTorch's ten losses") {
  const auto [mode, flags] = GENERATE(
      table<std::string, Words>({{"plain", {}}, {"explicit_prefetching", {"--explicit-prefetching", "--dcp-api"}}}));
  const TemporaryFolder folder;
  const auto weights = case_folder("tutorial");
  const Ended ended = run({on_ranks(2, Words{"train", "--model", "tutorial", "--model.init_from", weights.string(),
                                             "--data.tokens", (weights / "golden.safetensors").string(),
                                             "--metrics.dir", folder.path().string(), "--checkpoint.enabled", "false"} +
                                           flags)});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  const auto losses = column(json_lines(folder / "metrics.jsonl"), "loss");
  const auto expected = nlohmann::json::parse(read_file(weights / "golden.json")).at(mode).at("loss");
  REQUIRE(losses.size() == 10);
  for (size_t step = 0; step < 10; ++step) {
    CAPTURE(step);
    CHECK(std::abs(losses[step] / expected[step].get<double>() - 1) < 1e-5);
  }
}

TEST_CASE("first models: the FSDP2 example runs by its name alone, and in mixed precision near to that") {
  const TemporaryFolder folder;
  const auto losses = [&](const Words& flags) {
    const Ended ended =
        run({on_ranks(2, Words{"train", "--model", "tutorial", "--metrics.dir", folder.path().string(),
                               "--checkpoint.dir", folder.path().string(), "--checkpoint.resume", "never"} +
                             flags)});
    INFO(ended.all());
    REQUIRE(ended.code == 0);
    return column(json_lines(folder / "metrics.jsonl"), "loss");
  };
  const auto whole = losses({}), mixed = losses({"--mixed-precision"});
  REQUIRE(whole.size() == 10);
  CHECK(whole.back() < -1e6);  // nothing holds the sum of the outputs up
  CHECK(mixed.back() == Approx(whole.back()).epsilon(1e-2));
}

TEST_CASE("first models: the MNIST example's lines, its accuracy, and a run that goes on inside an epoch") {
  const MnistJob job;
  const Ended ended = job.train("whole", {"--training.epochs", "2"});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  for (const char* const line :
       {"Train Epoch: 1 \\[0/300 \\(0%\\)\\]\tLoss: \\d\\.\\d{6}\n", "Train Epoch: 1 \\[256/300 \\(67%\\)\\]\tLoss: ",
        "Train Epoch: 2 \\[0/300 \\(0%\\)\\]", "Batch 6 Validation loss: \\d\\.\\d{5}, accuracy: \\d+\\.\\d\\d%\n"}) {
    CAPTURE(line);
    CHECK(std::regex_search(ended.out, std::regex(line)));
  }
  const auto records = json_lines(job.folder / "whole" / "metrics.jsonl");
  REQUIRE(records.size() == 6);
  CHECK(records.back().at("tokens") == 600);
  CHECK(records.back().at("validation_accuracy").get<double>() > 0.5);
  CHECK_FALSE(records.front().contains("validation_accuracy"));

  REQUIRE(job.train("parts", {"--training.steps", "4"}).code == 0);
  const Ended resumed = job.train("parts", {"--training.steps", "6"});
  CHECK_THAT(resumed.all(), Catch::Contains("Resuming at epoch 1, after step 4"));
  CHECK(job.losses("parts") == job.losses("whole"));
}

TEST_CASE("first models: what is no text is not called so: images/s, and a loss without perplexity") {
  const MnistJob job;
  const Ended images = job.train("images", {"--metrics.line", "", "--metrics.interval", "1"});
  INFO(images.all());
  CHECK_THAT(images.out, Catch::Contains("  images/s: ") && !Catch::Contains("tokens/s"));

  const TemporaryFolder folder;
  const Ended trained = run({trainyard({"train", "--model", "tutorial", "--training.steps", "1", "--metrics.dir",
                                        folder.path().string(), "--checkpoint.dir", folder.path().string()})});
  INFO(trained.all());
  REQUIRE(trained.code == 0);
  write_text(folder / "ids.safetensors", token_file("input_ids", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const Ended evaluated = run({trainyard(
      {"evaluate", "--checkpoint", folder.path().string(), "--tokens", (folder / "ids.safetensors").string()})});
  INFO(evaluated.all());
  CHECK(std::regex_match(evaluated.out, std::regex("loss: [-+.e0-9]+ tokens: [0-9]+\n")));
}

TEST_CASE("first models: files that cannot be learned from end the run at its start") {
  const MnistJob job;
  const auto labels = job.folder / "train-labels-idx1-ubyte";
  std::filesystem::resize_file(labels, 200);
  check_failure(job.train("bad", {}, 1), 2,
                {"train-labels-idx1-ubyte: ends at byte 200", "[300]", "which end at byte 308"});
  write_text(labels, idx({300}, std::string(300, '\x0b')));
  check_failure(job.train("bad", {}, 1), 2, {"train-labels-idx1-ubyte: byte 8: label 11", "10 classes (0 to 9)"});
  check_failure(job.train("bad", {"--data.images", "", "--data.path", "random", "--training.steps", "1"}, 1), 2,
                {"a mnist model learns from labelled images", "data.images"});
}

}  // namespace trainyard::test
