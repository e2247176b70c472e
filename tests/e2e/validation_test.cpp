// The loss on held-out data while a run is under way.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cstdio>

#include "process.h"
#include "small_job.h"
#include "token_file.h"

namespace trainyard::test {
namespace {

/// 103 windows of 32 tokens and a little more: no number of rows a batch divides them.
std::string held_out_text() {
  std::string text;
  for (int line = 0; line < 220; ++line) text += fmt::format("{} and {}.\n", line % 29, line % 7);
  return text;
}

/// Step and loss of each validation.
std::vector<std::pair<int, double>> validations(const SmallJob& job) {
  std::vector<std::pair<int, double>> found;
  for (const auto& record : job.metrics())
    if (record.contains("validation_loss")) found.emplace_back(record.at("step"), record.at("validation_loss"));
  return found;
}

Ended train(const SmallJob& job, int ranks, const Words& more) {
  Ended ended = run({on_ranks(ranks, job.train(5, Words{"--checkpoint.enabled", "false"} + more)), {}});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

}  // namespace

TEST_CASE("validation: training is the same to the bit with and without it, under every strategy", "[bit_equal]") {
  const std::string strategy = GENERATE("full_shard", "shard_grad_op", "no_shard");
  CAPTURE(strategy);
  const SmallJob without, with;
  write_text(with.folder() / "held-out.txt", held_out_text());
  const Words common{"--parallel.strategy", strategy, "--training.accumulation_steps", "2"};
  train(without, 2, common);
  const Ended ended = train(
      with, 2,
      common + Words{"--validation.interval", "2", "--validation.path", (with.folder() / "held-out.txt").string()});
  CHECK(with.losses() == without.losses());
  CHECK(column(with.metrics(), "grad_norm") == column(without.metrics(), "grad_norm"));
  const auto found = validations(with);
  REQUIRE(found.size() == 3);
  CHECK(found[0].first == 2);
  CHECK(found[1].first == 4);
  CHECK(found[2].first == 5);  // the last step
  CHECK_THAT(ended.out, Catch::Contains(fmt::format("Batch 4 Validation loss: {:.5f}\n", found[1].second)));
}

TEST_CASE("validation: eval_strategy epoch validates after each pass over the data") {
  const SmallJob job;
  write_text(job.folder() / "corpus.txt", held_out_text().substr(0, 640));  // 20 windows of 32 tokens
  write_text(job.folder() / "held-out.txt", held_out_text());
  Words command = job.train(12, {"--eval_strategy", "epoch", "--checkpoint.enabled", "false", "--validation.path",
                                 (job.folder() / "held-out.txt").string()});
  const Ended ended = run({on_ranks(2, command), {}});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  std::vector<int> steps;
  for (const auto& [step, loss] : validations(job)) steps.push_back(step);
  CHECK(steps == std::vector{5, 10, 12});
}

TEST_CASE("mix: training goes on where it stopped, at another number of ranks too, and says the shares",
          "[bit_equal]") {
  const SmallJob whole, parts;
  const auto train_mix = [](const SmallJob& job, int ranks, int steps, const Words& more) {
    write_text(job.folder() / "other.txt", held_out_text());
    const std::string mix =
        fmt::format("{}=2, {}=1", (job.folder() / "corpus.txt").string(), (job.folder() / "other.txt").string());
    Ended ended = run(
        {on_ranks(ranks, job.train(steps, Words{"--data.path", "", "--data.mix", mix, "--optimizer.decay", "constant",
                                                "--validation.path", (job.folder() / "other.txt").string()} +
                                              more)),
         {}});
    INFO(ended.all());
    REQUIRE(ended.code == 0);
    return ended;
  };
  const Ended ended = train_mix(whole, 2, 6, {});
  CHECK_THAT(ended.all(), Catch::Contains("corpus.txt: 2 of 3 sequences") && Catch::Contains("other.txt: 1 of 3"));
  train_mix(parts, 2, 3, {});
  train_mix(parts, 1, 6, {"--training.batch_size", "4"});
  const std::vector<double> expected = whole.losses(), found = parts.losses();
  REQUIRE(found.size() == expected.size());
  for (size_t step = 0; step < expected.size(); ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-5));
}

TEST_CASE("validation: every held-out token counts once, whatever the ranks and rows a batch") {
  std::vector<double> losses;
  struct Split {
    int ranks, rows, tensor = 1;
  };
  for (const auto& [ranks, rows, tensor] : {Split{1, 103}, Split{1, 10}, Split{2, 7}, Split{3, 16}, Split{4, 7, 2}}) {
    const SmallJob job;
    write_text(job.folder() / "held-out.txt", held_out_text());
    // The batches of training differ with the ranks; a learning rate of nearly nothing keeps the weights.
    train(job, ranks,
          {"--validation.path", (job.folder() / "held-out.txt").string(), "--validation.batch_size",
           std::to_string(rows), "--optimizer.lr", "1e-30", "--parallel.tensor", std::to_string(tensor)});
    REQUIRE(validations(job).size() == 1);
    losses.push_back(validations(job)[0].second);
  }
  for (const double loss : losses) CHECK(loss == Approx(losses[0]).epsilon(1e-6));
}

TEST_CASE("validation: on pre-tokenised batches it is what evaluate gives for the same weights") {
  const SmallJob job;
  const auto tokens = job.folder() / "held-out.safetensors";
  std::vector<int32_t> ids(size_t{3} * 16);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i % 251);
  write_text(tokens, token_file("input_ids", {3, 16}, ids));
  const Ended trained = run({on_ranks(2, job.train(3, {"--validation.tokens", tokens.string()})), {}});
  INFO(trained.all());
  REQUIRE(trained.code == 0);
  const Ended evaluated =
      run({trainyard({"evaluate", "--checkpoint", job.checkpoints().string(), "--tokens", tokens.string()}), {}});
  INFO(evaluated.all());
  REQUIRE(validations(job).size() == 1);
  double loss = 0;
  REQUIRE(std::sscanf(lines_of(evaluated.out).back().c_str(), "loss: %lf", &loss) == 1);
  CHECK(validations(job)[0].second == Approx(loss).epsilon(1e-5));
}

}  // namespace trainyard::test
