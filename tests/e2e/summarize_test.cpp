// T5 on pairs of a source and a target, as a person runs it: the job of docs/seq2seq.md, small.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "failure.h"
#include "token_file.h"

namespace trainyard::test {
namespace {

using Header = nlohmann::ordered_json;

constexpr const char* kConfig =
    R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 260, "d_model": 16, "d_kv": 4, "d_ff": 24,
 "num_layers": 1, "num_decoder_layers": 2, "num_heads": 3, "n_positions": 64, "feed_forward_proj": "relu", "dropout_rate": 0.1})";

/// 24 pairs, of which some have the target in another field.
class Summaries {
 public:
  Summaries() {
    write_text(folder_ / "config.json", kConfig);
    std::string lines;
    for (int i = 0; i < 24; ++i)
      lines += fmt::format("{{\"text\": \"{} and {} {}\", \"{}\": \"{}\"}}\n", i, i * 7, std::string(i % 9, 'x'),
                           i % 3 == 0 ? "summary1" : "summary", i % 5);
    write_text(folder_ / "pairs.jsonl", lines);
  }
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::vector<double> losses() const { return column(json_lines(folder_ / "metrics.jsonl"), "loss"); }

  [[nodiscard]] double validation_loss() const {
    return json_lines(folder_ / "metrics.jsonl").back().at("validation_loss");
  }

  /// Rows of 4 a step over all ranks: 6 steps an epoch.
  [[nodiscard]] Words train(int epochs, int ranks, Words more = {}) const {
    return on_ranks(ranks, Words{"train",
                                 "--model.config",
                                 path("config.json"),
                                 "--data.path",
                                 path("pairs.jsonl"),
                                 "--data.tokenizer",
                                 "bytes",
                                 "--data.source_field",
                                 "text",
                                 "--data.target_field",
                                 "summary, summary1",
                                 "--data.prefix",
                                 "sum: ",
                                 "--data.max_source_length",
                                 "32",
                                 "--data.max_target_length",
                                 "8",
                                 "--training.batch_size",
                                 std::to_string(4 / ranks),
                                 "--training.epochs",
                                 std::to_string(epochs),
                                 "--optimizer.lr",
                                 "0.01",
                                 "--optimizer.decay",
                                 "constant",
                                 "--checkpoint.dir",
                                 path("checkpoints"),
                                 "--checkpoint.epoch_interval",
                                 "1",
                                 "--metrics.dir",
                                 folder_.path().string(),
                                 "--metrics.interval",
                                 "5",
                                 "--metrics.line",
                                 "Epoch {epoch} | Step {step} | Loss: {loss:.4f} | Strategy: {strategy}",
                                 "--sample.path",
                                 path("pairs.jsonl"),
                                 "--sample.count",
                                 "2",
                                 "--device.threads",
                                 "1"} +
                               more);
  }

 private:
  TemporaryFolder folder_;
};

Ended completed(const Words& words) {
  Ended ended = run({words});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

/// Of rank 0, whose name the launcher puts before it.
bool has_line(const Ended& ended, const std::string& beginning, const std::string& end = "") {
  return std::ranges::any_of(lines_of(ended.out), [&](const std::string& line) {
    return line.starts_with("[rank 0] " + beginning) && line.ends_with(end);
  });
}

}  // namespace

TEST_CASE("summarize: each epoch is saved, a resumed run goes on bit for bit, and answers are scored at the end", "[bit_equal]") {
  const Summaries at_once, resumed;
  const Ended whole = completed(at_once.train(2, 2));
  INFO(whole.all());
  CHECK(has_line(whole, "Epoch 0 | Step 5 | Loss: ", " | Strategy: FULL_SHARD"));
  CHECK(has_line(whole, "Epoch 1 | Step 10 | Loss: ", " | Strategy: FULL_SHARD"));
  CHECK(has_line(whole, "Training took ", " seconds"));
  CHECK(has_line(whole, "ROUGE-1: ", "over 2 pairs"));
  CHECK(has_line(whole, "source:    0 and 0"));
  CHECK(saved_in(at_once.path("checkpoints")) == Words{"latest", "step-12", "step-6"});

  completed(resumed.train(1, 2));
  const Ended second = completed(resumed.train(2, 2));
  CHECK(has_line(second, "Resuming at epoch 1, after step 6"));
  CHECK(resumed.losses() == at_once.losses());

  const Ended again = completed(resumed.train(2, 2));
  CHECK(has_line(again, "Training already completed!"));
  CHECK(has_line(again, "ROUGE-1: ", "over 2 pairs"));
}

TEST_CASE("summarize: ranks, accumulation, padding and threads that read leave the losses as they are") {
  const Summaries alone, other;
  completed(alone.train(2, 1));
  const auto& [ranks, more] = GENERATE(table<int, Words>({
      {2, {}},
      {4, {"--data.num_workers", "3", "--data.prefetch_factor", "1"}},
      {1, {"--training.batch_size", "1", "--training.accumulation_steps", "4"}},
      {2, {"--parallel.strategy", "no_shard", "--activation_checkpointing.mode", "full"}},
  }));
  CAPTURE(ranks, more);
  completed(other.train(2, ranks, more));
  const auto expected = alone.losses(), seen = other.losses();
  REQUIRE(seen.size() == expected.size());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == Approx(expected[i]).epsilon(1e-4));
}

TEST_CASE("summarize: the loss on held-out pairs is that of one pass over them, at any number of ranks") {
  const Summaries alone, split;
  const Words validation{"--validation.path", alone.path("pairs.jsonl"), "--validation.batch_size", "5"};
  completed(alone.train(1, 1, validation));
  completed(split.train(1, 4, validation));
  CHECK(alone.validation_loss() == Approx(split.validation_loss()).epsilon(1e-4));
}

TEST_CASE("summarize: what does not fit is one clear error") {
  const Summaries job;
  const auto refused = [&](const Words& more, const Words& says) {
    check_failure(run({job.train(1, 1, more)}), 2, says);
  };
  refused({"--data.source_field", "dialogue"}, {"pairs.jsonl:1: no field 'dialogue'"});
  write_text(job.path("other.jsonl"), "{\"text\": \"one\", \"resume\": \"two\"}\n");
  refused({"--sample.path", job.path("other.jsonl")}, {"sample.path: ", "other.jsonl:1: no field 'summary'"});
  CHECK(saved_in(job.path("checkpoints")).empty());  // so it was found before training
  refused({"--training.sequence_length", "64"}, {"training.sequence_length is 64", "data.max_source_length"});
  refused({"--data.max_source_length", "65"}, {"data.max_source_length is 65", "sources of 64 tokens"});
  refused({"--data.truncate", "false", "--data.max_source_length", "12"}, {"pair 1: the source has", "limit of 12"});
  refused({"--data.target_field", ""}, {"data.source_field is text", "data.target_field is not given"});
  check_failure(run({trainyard({"train", "--model.config", job.path("config.json"), "--data.path", "random",
                                "--training.steps", "1", "--metrics.dir", job.path("")})}),
                2, {"a t5 model learns from pairs", "data.source_field"});
}

TEST_CASE("summarize: a batch of which every label is ignored is told of") {
  const Summaries job;
  Header header;
  std::string data;
  const auto add = [&](const char* name, int64_t tokens, int32_t value) {
    const std::vector<int32_t> values(static_cast<size_t>(2 * tokens), value);
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t));
    header[name] = {{"dtype", "I32"}, {"shape", {2, tokens}}, {"data_offsets", {begin, data.size()}}};
  };
  add("input_ids", 5, 7), add("attention_mask", 5, 1), add("labels", 3, -100);
  write_text(job.path("batch.safetensors"), safetensors(header.dump(), data));
  check_failure(run({trainyard({"train", "--model.config", job.path("config.json"), "--data.tokens",
                                job.path("batch.safetensors"), "--training.steps", "2", "--checkpoint.enabled", "false",
                                "--metrics.dir", job.path("")})}),
                2, {"step 1: every label is ignored"});
}

}  // namespace trainyard::test
