#include "config/load.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <fstream>

#include "support/support.h"
#include "unit/config/error_of.h"

namespace trainyard::config {
namespace {
using namespace std::chrono_literals;

Loaded load_text(const std::string& text) {
  return load({}, {{"train.yaml", text}});
}

TEST_CASE("a file sets what it names and leaves the rest at its default", "[config]") {
  const Loaded loaded = load_text(R"(# a comment
model:
  preset: Qwen3-0.6B
training: {steps: 20, clip_grad_norm: 0.5}
optimizer:
  betas:
    - 0.8
    - 0.99
  decay: LINEAR
parallel:
  param_dtype: bfloat16
comm: {timeout: 90s}
metrics:
)");
  const Config& config = loaded.config;
  CHECK(config.model.preset == "Qwen3-0.6B");
  CHECK(config.training.steps == 20);
  CHECK(config.training.clip_grad_norm == 0.5);
  CHECK(config.training.batch_size == 8);
  CHECK(config.optimizer.betas == std::vector<double>{0.8, 0.99});
  CHECK(config.optimizer.decay == Decay::Linear);
  CHECK(config.parallel.param_dtype == Precision::BFloat16);
  CHECK(config.comm.timeout == 90s);
  CHECK(loaded.origin("model.preset") == "train.yaml:3");
  CHECK(loaded.origin("training.clip_grad_norm") == "train.yaml:4");
  CHECK(loaded.origin("training.batch_size") == "default");
}

TEST_CASE("merge keys take what a section does not say itself, the earlier of several first", "[config]") {
  const Loaded loaded = load_text(R"(x-common:
  base: &base {steps: 20, seed: 3, batch_size: 2}
  more: &more
    <<: *base
    seed: 4
    clip_grad_norm: 0.5
training:
  batch_size: 16
  <<: [*more, *base]
checkpoint: &saved {interval: 7}
)");
  CHECK(loaded.config.training.batch_size == 16);
  CHECK(loaded.config.training.steps == 20);
  CHECK(loaded.config.training.seed == 4);
  CHECK(loaded.config.training.clip_grad_norm == 0.5);
  CHECK(loaded.config.checkpoint.interval == 7);
  CHECK(loaded.origin("training.seed") == "train.yaml:5");
  CHECK(loaded.origin("training.steps") == "train.yaml:2");
  std::string all_in_all = "x-0: &a0 {steps: 1}\n";  // each line doubles what the one before merges
  for (int level = 1; level < 20; ++level)
    all_in_all += fmt::format("x-{0}: &a{0} {{<<: [*a{1}, *a{1}]}}\n", level, level - 1);
  CHECK_THAT(error_of([&] { load_text(all_in_all + "training: {<<: *a19}\n"); }),
             Catch::Contains("merges too many mappings"));
}

TEST_CASE("flags are read in every form that is promised", "[config]") {
  const Loaded loaded = load({"--training.steps", "7", "--training.seed=9", "--data.no_append_eos",
                              "--checkpoint.async", "--data.shuffle", "false", "--training.deterministic=FALSE",
                              "--optimizer.betas", "0.5,0.6", "--optimizer.betas=[0.7, 0.8]", "--parallel.strategy",
                              "SHARD_GRAD_OP", "--device", "cpu", "--parallel.shard", "-1", "--model.preset="});
  const Config& config = loaded.config;
  CHECK(config.training.steps == 7);
  CHECK(config.training.seed == 9);
  CHECK_FALSE(config.data.append_eos);
  CHECK(config.checkpoint.async);
  CHECK_FALSE(config.data.shuffle);
  CHECK_FALSE(config.training.deterministic);
  CHECK(config.optimizer.betas == std::vector<double>{0.7, 0.8});
  CHECK(config.parallel.strategy == Strategy::ShardGradOp);
  CHECK(config.device.kind == DeviceChoice::Cpu);
  CHECK(config.parallel.shard == -1);
  CHECK(config.model.preset.empty());
  CHECK(loaded.origin("device.kind") == "flag");
  CHECK(loaded.rest.empty());
}

TEST_CASE("later files win over earlier ones, and flags over both wherever they stand", "[config]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a.yaml") << "training: {steps: 1, epochs: 2, seed: 3}\n";
  std::ofstream(folder / "b.yaml") << "training:\n  epochs: 20\n  seed: 30\n";
  const Loaded loaded =
      load({"--training.seed", "300", "--config", folder / "a.yaml", "--config=" + (folder / "b.yaml").string()},
           {{"built in", "training: {steps: 100, batch_size: 4}"}});
  CHECK(loaded.config.training.steps == 1);
  CHECK(loaded.config.training.epochs == 20);
  CHECK(loaded.config.training.seed == 300);
  CHECK(loaded.config.training.batch_size == 4);
  CHECK(loaded.origin("training.epochs") == (folder / "b.yaml").string() + ":2");
  CHECK(loaded.origin("training.batch_size") == "built in:1");
}

TEST_CASE("arguments that set nothing are handed back in order", "[config]") {
  const Loaded loaded = load({"--print-config", "--training.steps", "3", "--profile", "out.json"});
  CHECK(loaded.rest == std::vector<std::string>{"--print-config", "--profile", "out.json"});
  CHECK(error_of([&] { refuse(loaded.rest); }) == "unknown argument --print-config; --help lists all");
  CHECK(error_of([] { refuse({"--steps"}); }) == "unknown argument --steps; did you mean --training.steps?");
  CHECK(error_of([] { refuse({}); }) == "no error");
}

TEST_CASE("a bad file is refused in one line with its place and what would be right", "[config]") {
  struct Row {
    const char* yaml;
    const char* message;
  };
  const std::vector<Row> rows{
      {"training:\n  step: 5\n", "train.yaml:2: unknown key training.step; did you mean training.steps?"},
      {"training:\n  lr: 5\n", "train.yaml:2: unknown key training.lr; did you mean optimizer.lr?"},
      {"training:\n  zzzzzz: 5\n", "train.yaml:2: unknown key training.zzzzzz; trainyard train --help lists all"},
      {"\ntrainig:\n  steps: 5\n", "train.yaml:2: unknown section trainig; did you mean training?"},
      {"wandb:\n  key: 5\n", "train.yaml:1: unknown section wandb; trainyard train --help lists all"},
      {"training.steps: 5\n",
       "train.yaml:1: training.steps is written as two lines in YAML: training: and, indented below it, steps:"},
      {"training:\n  steps: ten\n",
       "train.yaml:2: training.steps is 'ten'; it must be a whole number, at least 0 and at most 1000000000000"},
      {"parallel:\n  prefetch: -1\n",
       "train.yaml:2: parallel.prefetch is '-1'; it must be a whole number, at least 0 and at most 64"},
      {"training:\n  steps:\n", "train.yaml:2: training.steps has no value; leave the line out for the default"},
      {"model:\n  preset: ~\n",
       "train.yaml:2: model.preset has no value; leave the line out for the default, or write \"\""},
      {"training:\n  steps: [1, 2]\n", "train.yaml:2: training.steps is a list; it must be a whole number"},
      {"optimizer:\n  decay: {a: b}\n",
       "train.yaml:2: optimizer.decay is a mapping; it must be one of cosine, linear, sqrt, constant, clamped_cosine or "
       "clamped_linear"},
      {"optimizer:\n  betas: [[1], 2]\n",
       "train.yaml:2: optimizer.betas is '[?, 2]'; it must be a list of 2 numbers, such as [0.9, 0.95], each at least "
       "0 and below 1"},
      {"training:\n  steps: 5\n  steps: 6\n", "train.yaml:3: training.steps was already given at line 2; keep one"},
      {"training: {steps: 5}\ntraining: {epochs: 6}\n", "train.yaml:2: training was already given at line 1; keep one"},
      {"training:\n  steps: ten\n  step: 5\ntrainig:\n  a: 1\noptimizer:\n  lr: 0\n  learn: 1\n",
       "train.yaml:3: unknown key training.step; did you mean training.steps?; unknown besides: trainig, "
       "optimizer.learn; refused besides: training.steps, optimizer.lr"},
      {"training: 5\n", "train.yaml:1: section training holds no keys; write them indented below it"},
      {"training:\n  steps: \x04\n", "train.yaml:2: byte 0x04 is no UTF-8 text"},
      {"model:\n  preset: \xC3(\n", "train.yaml:2: byte 0xc3 is no UTF-8 text"},
      {"- training\n", "train.yaml:1: a configuration is a mapping of sections, such as training:"},
      {"hello\n", "train.yaml:1: a configuration is a mapping of sections, such as training:"},
      {"? [a]\n: 5\n", "train.yaml:1: a name is expected here"},
      {"training: {steps: 5}\n---\ndata: {}\n", "train.yaml:2: a second document begins here; one file holds one"},
      {"training:\n  steps: 5\n epochs: 6\n", "train.yaml:3:2: malformed YAML: end of map not found"},
      {"training: {steps: 5\n", "train.yaml:2:1: malformed YAML: end of map flow not found"},
      {"training:\n  seed: 1\n\tsteps: 5\n", "train.yaml:3: a tab indents this line, and YAML takes only spaces there"},
      {"# a\n\ntraining:\n\tsteps: 5\n", "train.yaml:4: a tab indents this line, and YAML takes only spaces there"},
      {"defaults: &defaults\n  steps: 5\n",
       "train.yaml:1: unknown section defaults; what only aliases use stands in a section named x-…"},
      {"training:\n  <<: 5\n", "train.yaml:2: <<: takes a mapping, such as *defaults, or a list of mappings"},
      {"training: &t\n  <<: *t\n", "train.yaml:1: <<: merges too many mappings, or one into itself"},
      {"x-a: &a {step: 5}\ntraining:\n  <<: *a\n", "train.yaml:1: unknown key training.step; did you mean training.steps?"},
      {"data:\n  field: \"\"\n", "train.yaml:2: data.field is ''; it must be a text that is not empty"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.yaml);
    CHECK(error_of([&] { load_text(row.yaml); }) == row.message);
  }
}

TEST_CASE("a bad flag is refused by its name", "[config]") {
  struct Row {
    std::vector<std::string> arguments;
    const char* message;
  };
  const std::vector<Row> rows{
      {{"--training.step", "5"}, "unknown flag --training.step; did you mean --training.steps?"},
      {{"--training.lr=5"}, "unknown flag --training.lr; did you mean --optimizer.lr?"},
      {{"--trainig.seeds=5"}, "unknown flag --trainig.seeds; did you mean training?"},
      {{"--a.b"}, "unknown flag --a.b; trainyard train --help lists all"},
      {{"--training.steps"}, "--training.steps needs a value after it"},
      {{"--training.steps", "--data.shuffle"}, "--training.steps needs a value after it"},
      {{"--config"}, "--config needs a value after it"},
      {{"--data.no_append_eos=true"}, "--data.no_append_eos takes no value; use --data.append_eos=true"},
      {{"--training.no_steps"}, "unknown flag --training.no_steps; trainyard train --help lists all"},
      {{"--device", "quantum"}, "--device is 'quantum'; use auto, cpu or cuda"},
      {{"--checkpoint.async=yes"}, "--checkpoint.async is 'yes'; use true or false"},
      {{"--model.preset", "a\xFF"}, "--model.preset is 'a\xFF'; it must be a text in UTF-8"},
      {{"--config", "/nonexistent/train.yaml"}, "/nonexistent/train.yaml: No such file or directory"},
  };
  for (const Row& row : rows) CHECK(error_of([&] { load(row.arguments); }) == row.message);
}

TEST_CASE("a file larger than a configuration can be is refused before it is parsed", "[config]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "big.yaml") << std::string(300 * 1024, '#');
  CHECK_THAT(error_of([&] { load({"--config", folder / "big.yaml"}); }), Catch::Contains("307200 bytes, more than"));
}

TEST_CASE("empty files and sections without keys set nothing", "[config]") {
  const char* const text = GENERATE("", "# only a comment\n", "---\n", "training:\ndata:\n");
  CHECK(load_text(text).origins.empty());
}

}  // namespace
}  // namespace trainyard::config
