// A model's folder goes through training, checkpoints, export and conversion as it came.
#include <catch2/catch.hpp>

#include <fstream>

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

}  // namespace trainyard::test
