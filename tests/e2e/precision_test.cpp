// Training in float16 and in several types at once, as a user switches it on.
#include <catch2/catch.hpp>

#include <algorithm>

#include "failure.h"

namespace trainyard::test {
namespace {

/// A scale that is too high at first.
const Words kFloat16{"--parallel.param_dtype", "fp16",    "--training.loss_scale_init", "1073741824",
                     "--optimizer.decay",      "constant"};

std::string train(const SmallJob& job, int steps, const Words& more) {
  const Ended ended = run({on_ranks(2, job.train(steps, more)), {}});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended.all();
}

/// What of each step must be the same to the bit.
std::vector<nlohmann::json> numbers(const SmallJob& job) {
  std::vector<nlohmann::json> all;
  for (const auto& record : job.metrics())
    all.push_back({record.at("loss"), record.at("grad_norm"), record.at("loss_scale"), record.at("skipped")});
  return all;
}

}  // namespace

TEST_CASE("fp16: steps that overflow are skipped and said, the scale halves, and the model learns") {
  const SmallJob job;
  const std::string said = train(job, 60, kFloat16);
  const auto records = job.metrics();
  REQUIRE(records.size() == 60);
  const auto skips =
      std::ranges::count_if(records, [](const nlohmann::json& each) { return each.at("skipped").get<bool>(); });
  CHECK(skips >= 5);
  CHECK(skips <= 20);
  double scale = 1073741824;
  for (const auto& record : records) {
    CHECK(record.at("loss_scale").get<double>() == scale);
    CHECK(record.at("grad_norm").is_null() == record.at("skipped").get<bool>());
    if (record.at("skipped").get<bool>()) scale /= 2;
  }
  CHECK_THAT(said, Catch::Contains("step 1 is skipped: its gradients overflowed at loss scale 1073741824, which is "
                                   "536870912 from now on"));
  CHECK_THAT(said, Catch::Contains("grad_norm: n/a  lr: ") && Catch::Contains("  (skipped: its gradients overflowed)"));
  CHECK_THAT(said, !Catch::Contains("nan  lr: "));
  CHECK(job.losses().back() < job.losses().front() - 1);
}

TEST_CASE("fp16: a run that is resumed among its skipped steps goes on to the bit, the scale included", "[bit_equal]") {
  const SmallJob straight, resumed;
  const Words more = kFloat16 + Words{"--training.loss_scale_growth_interval", "3"};
  train(straight, 24, more);
  for (const int steps : {12, 17, 24}) train(resumed, steps, more);
  CHECK(numbers(resumed) == numbers(straight));
}

TEST_CASE("fp16: what no lower scale mends ends the run with the name of the first bad tensor") {
  const SmallJob job;
  const Words more{"--training.loss_scale_init", "1e30", "--training.loss_scale_backoff_factor", "1e-31"};
  check_failure(run({trainyard(job.train(3, kFloat16 + more)), {}}), 3,
                {"step 1: loss 5.", "gradient norm", "the first bad tensor is the gradient of model."});
}

TEST_CASE("fp16: a run of nothing but skipped steps has trained nothing: code 3, and no checkpoint of it") {
  const SmallJob job;
  const Ended ended = run({trainyard(job.train(3, kFloat16)), {}});
  check_failure(ended, 3,
                {"every step up to the last, 3, was skipped", "nothing is trained",
                 "the loss scale is down to 134217728 by now", "a lower training.loss_scale_init"});
  CHECK(job.metrics().size() == 3);
  CHECK(saved_in(job.checkpoints()).empty());
}

TEST_CASE("fp16: in the words of Accelerate and of training scripts the loss is scaled too") {
  const SmallJob job;
  write_text(job.folder() / "fsdp.yaml", "distributed_type: FSDP\nmixed_precision: fp16\nfsdp_config: {}\n");
  const std::vector<Words> dialects{
      {"--config", (job.folder() / "fsdp.yaml").string()}, {"--mixed_precision", "fp16"}, {"--fp16", "true"}};
  const Words words = dialects[GENERATE(0U, 1U, 2U)];
  CAPTURE(words);
  train(job, 1, words);
  CHECK(job.metrics().front().at("loss_scale") == 65536);
}

TEST_CASE("precision: a checkpoint of mixed types goes on in any other, samples and evaluates") {
  const SmallJob job;
  const Words sample{"--sample.prompt", "3 times", "--sample.max_new_tokens", "8", "--optimizer.decay", "constant"};
  train(job, 6,
        sample + Words{"--parallel.param_dtype", "bf16", "--parallel.precision",
                       "model.layers.0=fp32, model.layers.1=fp16 output_dtype:fp32"});
  for (const auto& record : job.metrics()) CHECK(record.contains("loss_scale"));  // for the one in fp16
  train(job, 9, sample);
  const auto records = job.metrics();
  REQUIRE(records.size() == 9);
  CHECK_FALSE(records.back().contains("loss_scale"));
  CHECK(records[6].at("loss").get<double>() < records[0].at("loss").get<double>());
}

}  // namespace trainyard::test
