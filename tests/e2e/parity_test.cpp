// A person ports a model: two commands on the published files give PyTorch's numbers (data/parity/README.md).
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "numerics/parity_case.h"
#include "process.h"
#include "small_job.h"

namespace trainyard::test {
namespace {

/// The summary is the last line; under a launcher it comes after the rank's number.
std::string summary_of(const Ended& ended) {
  const auto lines = lines_of(ended.out);
  if (lines.empty()) return "";
  const std::string& last = lines.back();
  return last.starts_with("[rank 0] ") ? last.substr(9) : last;
}

double worst_difference(const Tensor& a, const Tensor& b) {
  const auto left = a.values<float>(), right = b.values<float>();
  double worst = 0;
  for (size_t i = 0; i < right.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(left[i]) - static_cast<double>(right[i])));
  return worst;
}

void check_near(const std::vector<double>& seen, const nlohmann::json& expected, double relative) {
  REQUIRE(seen.size() == expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(seen[i] / expected[i].get<double>() - 1) <= relative);
  }
}

/// metrics.jsonl of the reference's thirty steps.
std::vector<nlohmann::json> replay(int ranks, const std::string& name, const nlohmann::json& training,
                                   const Words& more) {
  const TemporaryFolder folder;
  const Ended ended = run({on_ranks(
      ranks, Words{"train", "--model.init_from", case_folder(name).string(), "--data.tokens",
                   (case_folder(name) / "golden.safetensors").string(), "--training.steps", "30", "--optimizer.lr",
                   fmt::format("{}", training.at("peak_lr").get<double>()), "--optimizer.warmup_steps", "5",
                   "--metrics.dir", folder.path().string(), "--checkpoint.enabled", "false", "--device.threads", "1"} +
                 more)});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return json_lines(folder / "metrics.jsonl");
}

}  // namespace

TEST_CASE(
    "evaluate: logits, loss and every gradient of a ported model agree with PyTorch, alone, over three ranks, and with "
    "layers that ranks split") {
  const auto name = GENERATE(from_range(decoder_cases()));
  if (case_folder(name).empty()) return skip("no reference data");
  const auto [ranks, tensor] = GENERATE(std::pair(1, 1), std::pair(3, 1), std::pair(2, 2), std::pair(4, 2));
  if (load_case(name).config.heads % tensor != 0) return;
  const TemporaryFolder folder;
  const Ended ended =
      run({on_ranks(ranks, {"evaluate", "--tensor", std::to_string(tensor), "--model", case_folder(name).string(),
                            "--tokens", (case_folder(name) / "golden.safetensors").string(), "--dump",
                            (folder / "dump.safetensors").string(), "--gradients"})});
  CAPTURE(name, ranks, tensor);
  INFO(ended.all());
  REQUIRE(ended.code == 0);

  const ParityCase parity = load_case(name);
  double loss = 0, perplexity = 0;
  long long tokens = 0;
  REQUIRE(std::sscanf(summary_of(ended).c_str(), "loss: %lf perplexity: %lf tokens: %lld", &loss, &perplexity,
                      &tokens) == 3);
  CHECK(loss == Approx(parity.expected.at("loss").get<double>()).epsilon(1e-5));
  CHECK(perplexity == Approx(std::exp(loss)));
  CHECK(tokens == parity.expected.at("valid_tokens").get<long long>());

  const SafetensorsFile dump(folder / "dump.safetensors");
  CHECK(worst_difference(dump.read("logits"), parity.golden.read("logits")) < 1e-4);
  size_t gradients = 0;
  for (const SafetensorsEntry& entry : parity.golden.entries()) {
    if (!entry.name.starts_with("grad.")) continue;
    CAPTURE(entry.name);
    const Tensor seen = dump.read(entry.name), expected = parity.golden.read(entry.name);
    CHECK(relative_l2(seen.values<float>(), expected.values<float>()) < 1e-4);
    ++gradients;
  }
  CHECK(dump.entries().size() == gradients + 1);
}

TEST_CASE("train: thirty replayed steps of a ported model are PyTorch's in metrics.jsonl") {
  const auto name = GENERATE(from_range(decoder_cases()));
  if (case_folder(name).empty()) return skip("no reference data");
  const int ranks = GENERATE(1, 2);
  CAPTURE(name, ranks);
  const nlohmann::json training = load_case(name).expected.at("training");
  const auto records = replay(ranks, name, training, {});
  check_near(column(records, "loss"), training.at("loss"), 1e-5);
  check_near(column(records, "grad_norm"), training.at("grad_norm"), 2e-4);
  check_near(column(records, "lr"), training.at("lr"), 1e-12);
  CHECK(column(records, "step").front() == 1);
}

TEST_CASE("train: bf16 parameters follow PyTorch's bf16 run in metrics.jsonl") {
  if (test_data().empty()) return skip("no reference data");
  const int ranks = GENERATE(1, 2);
  const auto expected =
      nlohmann::json::parse(std::ifstream(case_folder("qwen3-tiny") / "golden-bf16.json")).at("training");
  const nlohmann::json training = load_case("qwen3-tiny").expected.at("training");
  const auto records = replay(ranks, "qwen3-tiny", training, {"--parallel.param_dtype", "bf16"});
  CHECK(records.at(0).at("loss").get<double>() == Approx(expected.at("loss").at(0).get<double>()).epsilon(5e-3));
  check_near(column(records, "loss"), expected.at("loss"), 3e-2);
  check_near(column(records, "grad_norm"), expected.at("grad_norm"), 1e-1);
}

TEST_CASE("evaluate: bf16 is as near to PyTorch's bf16 as bf16 allows") {
  if (test_data().empty()) return skip("no reference data");
  const auto expected = nlohmann::json::parse(std::ifstream(case_folder("qwen3-tiny") / "golden-bf16.json"));
  const Ended ended =
      run({trainyard({"evaluate", "--model", case_folder("qwen3-tiny").string(), "--tokens",
                      (case_folder("qwen3-tiny") / "golden.safetensors").string(), "--param-dtype", "bf16"})});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  double loss = 0;
  REQUIRE(std::sscanf(summary_of(ended).c_str(), "loss: %lf", &loss) == 1);
  CHECK(loss == Approx(expected.at("loss").get<double>()).epsilon(5e-3));
}

}  // namespace trainyard::test
