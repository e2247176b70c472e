// A model's folder goes through training, checkpoints, export and conversion as it came, and says where texts end.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "failure.h"

namespace trainyard::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Ended done(const Words& words) {
  Ended ended = run({trainyard(words), {}, std::chrono::seconds(60)});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// What a launcher shows of rank 0, without its number before each line.
std::string without_rank_numbers(const std::string& shown) {
  static constexpr std::string_view kNumber = "[rank 0] ";
  std::string text;
  for (size_t begin = 0; begin < shown.size();) {
    if (shown.compare(begin, kNumber.size(), kNumber) == 0) begin += kNumber.size();
    const size_t end = std::min(shown.find('\n', begin), shown.size() - 1) + 1;
    text += shown.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

/// A job, the model that it trained for a few steps as a Hugging Face folder, and further such folders.
class Folders {
 public:
  Folders() {
    done(job_.train(30, {"--checkpoint.interval", "0"}));
    export_to(job_.checkpoints(), "given");
    json config = json::parse(text_of(at("given") / "config.json"));
    config.update(of_nobody_);
    write_text(at("given") / "config.json", config.dump());
    write_text(at("given") / "of_nobody.txt", "as it came");
    write_text(at("given") / "generation_config.json", "{}");
  }

  [[nodiscard]] fs::path at(const std::string& name) const { return job_.folder() / name; }
  void export_to(const fs::path& checkpoint, const std::string& name) const {
    done({"checkpoint", "export", checkpoint.string(), "--output", at(name).string()});
  }
  /// A step from the weights in `from`; its checkpoints go to `to`. `more` wins.
  Ended train(const std::string& from, const std::string& to, const Words& more = {}) const {
    return done(job_.train(1, Words{"--model.config", "", "--model.init_from", at(from).string(), "--checkpoint.dir",
                                    at(to).string()} +
                                  more));
  }
  void check_came_through(const std::string& name) const {
    CAPTURE(name);
    CHECK(text_of(at(name) / "of_nobody.txt") == "as it came");
    CHECK(text_of(at(name) / "generation_config.json") == "{}");
    const json config = json::parse(text_of(at(name) / "config.json"), nullptr, false);
    REQUIRE(config.is_object());
    for (const auto& [key, value] : of_nobody_.items()) CHECK(config.value(key, json("absent")) == value);
  }

 private:
  SmallJob job_;
  const json of_nobody_{{"eos_token_id", {256, 3}}, {"bos_token_id", nullptr}, {"of_nobody", {{"a", 1.5}}}};
};

}  // namespace

TEST_CASE("model folder: an unknown field and an unknown small file come through every way out") {
  const Folders folders;
  const std::string form = GENERATE(as<std::string>(), "sharded", "full");
  folders.train("given", "run", {"--checkpoint.state_dict", form});
  if (form == "full") folders.check_came_through("run/step-1");
  folders.export_to(folders.at("run"), "exported");
  folders.check_came_through("exported");
  for (const char* const to : {"hf", "dcp", "pt"}) {
    for (const char* const from : {"given", "run"}) {
      const std::string out = std::string(from) + "-as-" + to;
      done({"checkpoint", "convert", folders.at(from).string(), "--format", to, "--output", folders.at(out).string()});
      folders.check_came_through(out);
    }
  }
  done({"checkpoint", "reshard", folders.at("run").string(), "--ranks", "2", "--output",
        folders.at("resharded").string()});
  folders.train("resharded", "again");
  folders.export_to(folders.at("again"), "exported again");
  folders.check_came_through("exported again");
}

TEST_CASE("model folder: what a checkpoint holds goes on in a run that names a size and begins from it") {
  const Folders folders;
  folders.train("given", "run", {"--model.init_from", "", "--model.config", (folders.at("given") / "config.json").string()});
  folders.export_to(folders.at("run"), "exported");
  const json config = json::parse(text_of(folders.at("exported") / "config.json"));
  CHECK(config.at("eos_token_id") == json{256, 3});
  folders.train("given", "first");
  folders.train("given", "second",
                {"--model.init_from", "", "--model.config", (folders.at("given") / "config.json").string(),
                 "--checkpoint.initial_load_path", folders.at("first").string()});
  folders.export_to(folders.at("second"), "exported again");
  folders.check_came_through("exported again");
}

TEST_CASE("model folder: the tokenizer of data.tokenizer takes the place of the model's, whose other files stay") {
  const Folders folders;
  for (const char* const name : {"tokenizer.json", "special_tokens_map.json", "chat_template.jinja"})
    write_text(folders.at("given") / name, "{}");
  folders.train("given", "run");
  folders.export_to(folders.at("run"), "exported");
  folders.check_came_through("exported");
  CHECK_FALSE(fs::exists(folders.at("exported") / "tokenizer.json"));
  CHECK_FALSE(fs::exists(folders.at("exported") / "special_tokens_map.json"));
  CHECK(fs::exists(folders.at("exported") / "chat_template.jinja"));
}

TEST_CASE("model folder: a run says once that AutoTokenizer will split its tokenizer.json otherwise") {
  const SmallJob job;
  const auto [family, architecture, times] = GENERATE(
      table<std::string, std::string, int>({{"qwen2", "Qwen2ForCausalLM", 1}, {"llama", "LlamaForCausalLM", 0}}));
  json config = job.config();
  config.update({{"model_type", family}, {"architectures", json::array({architecture})}});
  write_text(job.folder() / "config.json", config.dump());
  const fs::path tokenizer = job.folder() / "tokenizer.json";
  write_text(tokenizer, R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2}, "merges": []}})");
  std::string text;
  while (text.size() < 600) text += "abacbc";
  write_text(job.folder() / "corpus.txt", text);
  const Words command = job.train(1, {"--data.tokenizer", tokenizer.string(), "--data.append_eos", "false"});
  const Ended ended = run({on_ranks(2, command), {}});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  const auto warnings = std::ranges::count_if(lines_of(ended.all()), [&](const std::string& line) {
    return line.find(tokenizer.string() + ": beside the config.json of a qwen2 model") != std::string::npos;
  });
  CHECK(warnings == times);
}

TEST_CASE("generate: a text ends before an id that the model's folder names, in samples of training too") {
  const Folders folders;
  const auto generated = [&](const Words& of) {
    return done(Words{"generate", "--tokenizer", "bytes", "--prompt", "3 times ", "--temperature", "0", "--max-new-tokens",
                      "12"} +
                of)
        .out;
  };
  const std::string model = folders.at("given").string();
  const std::string whole = generated({"--model", model});
  REQUIRE(whole.size() > 12);
  const std::string made = whole.substr(8), end = made.substr(2, 1);  // its third byte ends it from here on
  const std::string expected = "3 times " + made.substr(0, made.find(end)) + "\n";
  const int id = static_cast<unsigned char>(end[0]);
  write_text(folders.at("given") / "generation_config.json", json{{"eos_token_id", {1, id}}}.dump());
  CHECK(generated({"--model", model}) == expected);
  folders.train("given", "run", {"--optimizer.lr", "1e-9"});
  CHECK(generated({"--checkpoint", folders.at("run").string()}) == expected);
  const Ended trained = folders.train("given", "sampled",
                                      {"--sample.prompt", "3 times ", "--sample.max_new_tokens", "12",
                                       "--sample.temperature", "0"});
  CHECK_THAT(trained.out, Catch::Contains("sample before training ──\n" + expected + "──"));
  write_text(folders.at("given") / "generation_config.json", R"({"eos_token_id": 257})");
  check_failure(run({trainyard({"generate", "--model", model, "--tokenizer", "bytes", "--prompt", "3"})}), 2,
                {"generation_config.json: eos_token_id is 257", "from 0 to 256"});
}

TEST_CASE(
    "generate: a text is the same alone, from ranks that share the parameters and from ranks that split layers, and in a pod "
    "of a job it meets nobody") {
  const Folders folders;
  const Words asked{"--model", folders.at("given").string(), "--tokenizer", "bytes", "--prompt", "3 times ",
                    "--temperature", "0", "--max-new-tokens", "12"};
  const std::string alone = done(Words{"generate"} + asked).out;
  for (const auto& [ranks, tensor] : {std::pair(2, "1"), std::pair(2, "2"), std::pair(4, "2")}) {
    CAPTURE(ranks, tensor);
    const Ended ended = run({on_ranks(ranks, Words{"generate", "--tensor", tensor} + asked)});
    INFO(ended.all());
    REQUIRE(ended.code == 0);
    CHECK(without_rank_numbers(ended.out) == alone);
  }
  check_failure(run({trainyard(Words{"generate", "--tensor", "2"} + asked)}), 2,
                {"--tensor is 2, but there is one rank", "trainyard launch --nproc-per-node 2"});
  const std::map<std::string, std::string> pod{
      {"WORLD_SIZE", "3"}, {"RANK", "0"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}};
  CHECK(run({trainyard(Words{"generate"} + asked), pod}).out == alone);
}

}  // namespace trainyard::test
