#include "metrics/line.h"

#include <catch2/catch.hpp>

#include "base/error.h"

namespace trainyard::metrics {
namespace {

StepRecord record() {
  return {.step = 10,
          .loss = 8.123451,
          .grad_norm = 1.23449,
          .lr = 3e-4,
          .tokens = 1'234'567,
          .tokens_per_second = 1234.4,
          .samples_per_second = 9.41,
          .mfu = 0.1234,
          .memory_bytes = 558'345'748,  // 0.52 × 2^30
          .time = 1.5};
}

std::string error_of(const std::string& pattern) {
  try {
    LineFormat{pattern};
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("the standard line is what docs/interfaces.md promises", "[metrics]") {
  CHECK(LineFormat("").format(record()) ==
        "step: 10  loss: 8.12345  grad_norm: 1.2345  lr: 3.0e-04  tokens/s: 1,234  mfu: 12.3%  memory: 0.52GiB");
}

TEST_CASE("the line of a run over images counts these", "[metrics]") {
  CHECK(LineFormat(kImagesLine).format(record()) ==
        "step: 10  loss: 8.12345  grad_norm: 1.2345  lr: 3.0e-04  images/s: 9.4  mfu: 12.3%  memory: 0.52GiB");
}

TEST_CASE("the lines of other programs have names", "[metrics]") {
  StepRecord r = record();
  r.epoch = 2, r.ranks = 2, r.flops_per_second = 3e12;
  CHECK(LineFormat("hyperpod").format(r) == "Batch 10 Loss: 8.12345, Speed: 9.41 samples/sec, lr: 0.000300");
  CHECK(LineFormat("torchtitan").format(r) ==
        "step: 10  loss:  8.12345  grad_norm:  1.2345  memory:  0.52GiB  tps: 617  tflops: 1.50  mfu: 12.3%");
}

TEST_CASE("the line of the T5 example counts the steps of an epoch from 0, of 63 every tenth and no last one",
          "[metrics]") {
  const LineFormat line("t5", "FULL_SHARD");
  StepRecord r = record();
  std::vector<std::string> printed;
  for (int64_t step = 64; step <= 126; ++step) {
    r.step = step, r.epoch = 1, r.step_of_epoch = step - 64;
    if (line.is_due(r, 10, step == 126)) printed.push_back(line.format(r));
  }
  REQUIRE(printed.size() == 7);
  CHECK(printed.front() == "Epoch 1 | Step 0 | Loss: 8.1235 | Strategy: FULL_SHARD");
  CHECK(printed.back() == "Epoch 1 | Step 60 | Loss: 8.1235 | Strategy: FULL_SHARD");
}

TEST_CASE("the line of the MNIST example counts the batches of an epoch from 0, and is due by that number",
          "[metrics]") {
  const LineFormat line("mnist");
  StepRecord r = record();
  r.step = 470, r.epoch = 1, r.step_of_epoch = 0, r.dataset_size = 60000;
  CHECK(line.format(r) == "Train Epoch: 2 [0/60000 (0%)]\tLoss: 8.123451");
  CHECK(line.is_due(r, 100, false));
  r.step = 570, r.step_of_epoch = 100, r.epoch_samples = 12800, r.epoch_percent = 21.3;
  CHECK(line.format(r) == "Train Epoch: 2 [12800/60000 (21%)]\tLoss: 8.123451");
  CHECK(line.is_due(r, 100, false));
  CHECK_FALSE(LineFormat("hyperpod").is_due(r, 100, false));
  r.step = 600;
  CHECK(LineFormat("hyperpod").is_due(r, 100, false));
  r.step = 601;
  CHECK(LineFormat("hyperpod").is_due(r, 100, true));
}

TEST_CASE("an accuracy is printed as a percentage, and n/a without a validation", "[metrics]") {
  StepRecord r = record();
  const LineFormat line(kAccuracyLine);
  CHECK(line.format(r) == "Batch 10 Validation loss: n/a, accuracy: n/a");
  r.validation_loss = 0.25, r.validation_accuracy = 0.98765;
  CHECK(line.format(r) == "Batch 10 Validation loss: 0.25000, accuracy: 98.77%");
  CHECK(LineFormat("{validation_accuracy:.3f}").format(r) == "0.988");
}

TEST_CASE("without a peak there is no MFU to print, in either form, and no loss scale where none is used",
          "[metrics]") {
  StepRecord without = record();
  without.mfu.reset();
  CHECK(LineFormat("{mfu} {mfu:.3f}").format(without) == "n/a n/a");
  CHECK(LineFormat("{loss_scale}").format(without) == "n/a");
  without.loss_scale = 65536;
  CHECK(LineFormat("{loss_scale} {loss_scale:.1e}").format(without) == "65536 6.6e+04");
}

TEST_CASE("a skipped step has no gradient norm to print, in either form", "[metrics]") {
  StepRecord skipped = record();
  skipped.grad_norm.reset();
  CHECK(LineFormat("{grad_norm} {grad_norm:7.4f}").format(skipped) == "n/a n/a");
}

TEST_CASE("a pattern of one's own takes names, specifications and doubled braces", "[metrics]") {
  struct Row {
    const char* pattern;
    const char* line;
  };
  const Row row =
      GENERATE(Row{"{loss:.2f}", "8.12"},
               Row{"Batch {step} Loss: {loss:.5f}, lr: {lr:.6f}", "Batch 10 Loss: 8.12345, lr: 0.000300"},
               Row{"{{{step}}}", "{10}"}, Row{"{step:>5}|{mfu:.4f}|{tokens}", "   10|0.1234|1,234,567"},
               Row{"{memory:.1f} {memory_bytes}", "0.5 558345748"}, Row{"{samples_per_second} {time}", "9.4 1.500"},
               Row{"{tokens_per_second:.2e}", "1.23e+03"}, Row{"é{step}", "é10"});
  CHECK(LineFormat(row.pattern).format(record()) == row.line);
}

TEST_CASE("a pattern that cannot be printed is refused before training starts", "[metrics]") {
  CHECK(error_of("{los}") == "unknown placeholder {los}; did you mean {loss}?");
  CHECK_THAT(error_of("{perplexity}"), Catch::Contains("unknown placeholder {perplexity}; use step, loss, grad_norm"));
  CHECK_THAT(error_of("{}"), Catch::Contains("unknown placeholder {}; use step"));
  CHECK(error_of("{loss") == "a { without its }; write {{ for the character itself");
  CHECK(error_of("loss}") == "a } without its {; write }} for the character itself");
  CHECK_THAT(error_of("{step:.3s}"), Catch::Contains("{step:.3s} cannot be formatted: "));
  CHECK_THAT(error_of("{step:.3f}"), Catch::Contains("; write it like {step:6}"));
  CHECK_THAT(error_of("{loss:d}"), Catch::Contains("; write it like {loss:.3f}"));
  CHECK_THAT(error_of("{loss:1000000000}"), Catch::Contains("cannot be formatted: too wide"));
  CHECK_THAT(error_of("{loss:{step}}"), Catch::Contains("cannot be formatted: too wide, or a brace inside"));
  CHECK(error_of("torchtitn") ==
        "'torchtitn' has no {name} in it and is none of hyperpod, torchtitan, t5, mnist; did you mean torchtitan?");
  CHECK(error_of("a\nb") == "a control character, such as a line feed, cannot be part of the line");
}

}  // namespace
}  // namespace trainyard::metrics
