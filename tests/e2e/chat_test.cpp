// Training on conversations, and asking a model through its chat template.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "failure.h"

namespace trainyard::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kTemplate =
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}";
constexpr int kVocabulary = 260;

/// A byte-level vocabulary, of which three tokens are special and one ends a turn.
void write_tokenizer(const fs::path& folder) {
  json vocabulary = json::object(), added = json::array();
  for (int byte = 0; byte < 256; ++byte) {  // GPT-2's letters of bytes
    const bool is_printed = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int shift = byte < 33 ? 256 + byte : byte < 161 ? 256 + 33 + byte - 127 : 256 + 33 + 34;
    const unsigned letter = static_cast<unsigned>(is_printed ? byte : shift);
    const std::string text = letter < 128 ? std::string(1, static_cast<char>(letter))
                                          : std::string{static_cast<char>(0xC0U | letter >> 6U),
                                                        static_cast<char>(0x80U | (letter & 0x3FU))};
    vocabulary[text] = byte;
  }
  for (const char* const token : {"<|end|>", "<|user|>", "<|assistant|>", "<|system|>"})
    added.push_back({{"id", 256 + added.size()}, {"content", token}, {"special", true}});
  const json tokenizer{{"added_tokens", added},
                       {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                       {"decoder", {{"type", "ByteLevel"}}},
                       {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
  fs::create_directories(folder);
  write_text(folder / "tokenizer.json", tokenizer.dump());
  write_text(
      folder / "tokenizer_config.json",
      json{{"eos_token", "<|end|>"}, {"tokenizer_class", "PreTrainedTokenizerFast"}, {"chat_template", kTemplate}}
          .dump());
}

/// A job whose data are 40 short conversations.
class Talk {
 public:
  Talk() {
    json config = job_.config();
    config["vocab_size"] = kVocabulary;
    write_text(job_.folder() / "config.json", config.dump());
    write_tokenizer(at("tokenizer"));
    std::string lines;
    for (int line = 0; line < 40; ++line) {
      const json messages{{{"role", "system"}, {"content", fmt::format("You are number {}.", line % 7)}},
                          {{"role", "user"}, {"content", fmt::format("What of {}?", line * 13)}},
                          {{"role", "assistant"}, {"content", "It is so."}}};
      lines += json{{"messages", messages}}.dump() + "\n";
    }
    write_text(at("talk.jsonl"), lines);
  }

  [[nodiscard]] fs::path at(const std::string& name) const { return job_.folder() / name; }
  [[nodiscard]] const SmallJob& job() const { return job_; }
  [[nodiscard]] Words train(int steps, const Words& more = {}) const {
    return job_.train(steps, Words{"--data.path", at("talk.jsonl").string(), "--data.messages_field", "messages",
                                   "--data.tokenizer", at("tokenizer").string(), "--optimizer.decay", "constant"} +
                                 more);
  }

 private:
  SmallJob job_;
};

Ended run_well(const Words& words) {
  Ended ended = run({words, {}, std::chrono::seconds(120)});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

void check_close(const std::vector<double>& losses, const std::vector<double>& expected) {
  REQUIRE(losses.size() == expected.size());
  for (size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == Approx(expected[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("chat: a model that was trained on conversations answers as they do, and ends its turn") {
  const Talk talk;
  run_well(on_ranks(1, talk.train(60, {"--checkpoint.interval", "0"})));
  CHECK(talk.job().losses().back() < 1);
  const Words question{
      "generate", "--checkpoint", talk.job().checkpoints().string(), "--temperature", "0", "--max-new-tokens", "30"};
  const Ended answer =
      run_well(trainyard(question + Words{"--chat", "--system", "You are number 3.", "--prompt", "What of 27?"}));
  CHECK(answer.out == "It is so.\n");
  // The same words by hand. Nothing but the template's end of a turn says that the answer is over.
  const std::string asked = "<|system|>You are number 3.<|end|><|user|>What of 27?<|end|><|assistant|>";
  CHECK(run_well(trainyard(question + Words{"--prompt", asked})).out == asked + "It is so.\n");
  write_text(talk.at("other.jinja"), "{{ word }}{% for m in messages %}<|user|>{{ m.content }}<|end|>{% endfor %}");
  const Words by_another{
      "--chat",   "--template", talk.at("other.jinja").string(), "--template-kwargs", R"({"word": "<|system|>"})",
      "--prompt", "a"};
  const std::string by_hand = "<|system|><|user|>a<|end|>";
  CHECK(by_hand + run_well(trainyard(question + by_another)).out ==
        run_well(trainyard(question + Words{"--prompt", by_hand})).out);
}

TEST_CASE("chat: losses are the same on one rank, on several, with split layers and with split rows, and go on") {
  const Talk alone, talk;
  run_well(on_ranks(1, alone.train(6, {"--training.batch_size", "4"})));
  const auto expected = alone.job().losses();
  const auto& [ranks, more] =
      GENERATE(table<int, Words>({{2, {"--training.batch_size", "2"}},
                                  {2, {"--training.batch_size", "4", "--parallel.tensor", "2"}},
                                  {2, {"--training.batch_size", "4", "--parallel.context", "2"}}}));
  CAPTURE(more);
  run_well(on_ranks(ranks, talk.train(3, more)));
  run_well(on_ranks(1, talk.train(6, {"--training.batch_size", "4"})));
  check_close(talk.job().losses(), expected);
}

TEST_CASE("chat: a mix, a share that is held out and another loss train on conversations too") {
  const Talk talk;
  const std::string path = talk.at("talk.jsonl").string();
  run_well(on_ranks(1, talk.train(2, {"--validation.split", "0.2", "--checkpoint.enabled", "false"})));
  fs::copy_file(path, talk.at("more.jsonl"));
  run_well(
      on_ranks(1, talk.train(2, {"--data.path", "", "--data.mix", path + "=3, " + talk.at("more.jsonl").string() + "=1",
                                 "--validation.path", path, "--checkpoint.enabled", "false"})));
  CHECK(talk.job().metrics().back().contains("validation_loss"));
  const auto answers = column(talk.job().metrics(), "tokens").back();
  run_well(on_ranks(1, talk.train(2, {"--data.loss_on", "all", "--checkpoint.enabled", "false"})));
  CHECK(column(talk.job().metrics(), "tokens").back() == 2 * 2 * 32);
  CHECK(answers < 2 * 2 * 32);
}

TEST_CASE("chat: what does not fit conversations is one error") {
  const Talk talk;
  const auto fails = [&](const Words& more, const Words& says) {
    check_failure(run({trainyard(talk.train(1, more))}), 2, says);
  };
  fails({"--data.chat_template_kwargs", "[1]"}, {"data.chat_template_kwargs: must be a JSON object, is array"});
  fails({"--data.chat_template", "/nowhere.jinja"}, {"/nowhere.jinja"});
  fails({"--data.tokenizer", "bytes"}, {"the tokenizer 'bytes' has no chat template"});
  fails({"--data.messages_field", "message"}, {"talk.jsonl:1: no field 'message', did you mean 'messages'?"});
  fails({"--data.path", "embedded"},
        {"data.messages_field is messages", "is for data.path a file of JSON lines or a table"});
  fails({"--data.path", "", "--data.mix", "embedded=1, " + talk.at("talk.jsonl").string() + "=1"},
        {"'embedded' is a text, and data.messages_field is for other lines"});
  CHECK_FALSE(fs::exists(talk.job().checkpoints() / "step-1"));
}

}  // namespace trainyard::test
