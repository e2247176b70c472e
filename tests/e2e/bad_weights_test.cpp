// model.init_from: weights that contradict config.json, and files that are damaged or made to do harm.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <functional>

#include "failure.h"
#include "token_file.h"

namespace trainyard::test {
namespace {

using Header = nlohmann::ordered_json;

/// A header of float32 tensors in this order, one after the other.
class Weights {
 public:
  void add(const std::string& name, const std::vector<int64_t>& shape) {
    int64_t bytes = 4;
    for (const int64_t size : shape) bytes *= size;
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {bytes_, bytes_ + bytes}}};
    bytes_ += bytes;
  }
  [[nodiscard]] std::string file() const { return safetensors(header.dump(), data()); }
  [[nodiscard]] std::string data() const { return std::string(static_cast<size_t>(bytes_), '\0'); }

  Header header;

 private:
  int64_t bytes_ = 0;
};

constexpr const char* kFirst = "model.embed_tokens.weight";
constexpr const char* kSecond = "model.layers.0.input_layernorm.weight";

/// All that the small job's model has, of zeros: its values are never the matter here.
Weights whole_model() {
  Weights weights;
  weights.add(kFirst, {257, 32});
  for (int layer = 0; layer < 2; ++layer) {
    const auto add = [&](const char* name, const std::vector<int64_t>& shape) {
      weights.add(fmt::format("model.layers.{}.{}.weight", layer, name), shape);
    };
    add("input_layernorm", {32});
    add("self_attn.q_proj", {32, 32});
    add("self_attn.k_proj", {16, 32});
    add("self_attn.v_proj", {16, 32});
    add("self_attn.o_proj", {32, 32});
    add("post_attention_layernorm", {32});
    add("mlp.gate_proj", {64, 32});
    add("mlp.up_proj", {64, 32});
    add("mlp.down_proj", {32, 64});
  }
  weights.add("model.norm.weight", {32});
  return weights;
}

struct BadWeights {
  const char* situation;
  std::function<void(nlohmann::json& config)> configure;  ///< changes config.json
  std::function<std::string()> file;                      ///< model.safetensors
  Words says;
};

BadWeights config_says(const char* situation, const char* key, int value, Words says) {
  return {situation, [=](nlohmann::json& config) { config[key] = value; }, [] { return whole_model().file(); },
          std::move(says)};
}

BadWeights bytes_are(const char* situation, std::function<std::string()> file, Words says) {
  says.insert(says.begin(), "model.safetensors");
  return {situation, [](nlohmann::json&) {}, std::move(file), std::move(says)};
}

BadWeights header_is(const char* situation, std::function<void(Header&)> change, Words says) {
  return bytes_are(
      situation,
      [=] {
        Weights weights = whole_model();
        change(weights.header);
        return weights.file();
      },
      std::move(says));
}

std::vector<BadWeights> contradictions() {
  return {
      config_says("another vocabulary", "vocab_size", 300, {kFirst, "[257, 32]", "config.json makes it [300, 32]"}),
      config_says("another feed-forward", "intermediate_size", 48, {"mlp.gate_proj", "[64, 32]", "[48, 32]"}),
      config_says("more layers than weights", "num_hidden_layers", 3, {"no tensor 'model.layers.2."}),
      config_says("fewer layers than weights", "num_hidden_layers", 1,
                  {"holds model.layers.1.", "config.json makes is model.layers.0"}),
      header_is("a tensor is missing", [](Header& header) { header.erase("model.norm.weight"); }, {}),
      header_is("whole numbers", [](Header& header) { header["model.norm.weight"]["dtype"] = "I32"; },
                {"model.norm.weight", "I32", "floating point"}),
  };
}

std::vector<BadWeights> damages() {
  const auto whole = [] { return whole_model().file(); };
  return {
      bytes_are("nothing at all", [] { return std::string(); }, {"0 bytes", "too short"}),
      bytes_are("cut in the header", [=] { return whole().substr(0, 100); }, {"a file of 100", "truncated"}),
      bytes_are("cut in the data", [=] { return whole().substr(0, whole().size() - 40); }, {"outside", "truncated"}),
      bytes_are("a header of 2^60 bytes", [=] { return std::string("\0\0\0\0\0\0\0\x10", 8) + whole().substr(8); },
                {"1152921504606846976 bytes", "at most 100000000"}),
      bytes_are("a header that is no JSON", [] { return safetensors(std::string(500, '{'), ""); }, {"malformed JSON"}),
      header_is("overlapping tensors",
                [](Header& header) {
                  header["model.norm.weight"]["data_offsets"] = {0, 128};
                },
                {"overlaps"}),
      header_is("offsets past the end",
                [](Header& header) {
                  header["model.norm.weight"]["data_offsets"] = {1 << 30, (1 << 30) + 128};
                },
                {"model.norm.weight", "1073741824 to 1073741952", "outside"}),
      header_is("offsets the wrong way round",
                [](Header& header) {
                  header["model.norm.weight"]["data_offsets"] = {128, 0};
                },
                {"model.norm.weight"}),
      header_is("negative offsets",
                [](Header& header) {
                  header["model.norm.weight"]["data_offsets"] = {-128, 0};
                },
                {"model.norm.weight"}),
      header_is("a shape past 2^64",
                [](Header& header) {
                  header[kSecond]["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
                },
                {kSecond, "overflows"}),
      header_is("a shape that its bytes do not fit", [](Header& header) { header[kSecond]["shape"] = {33}; },
                {kSecond}),
      header_is("a type of nobody's", [](Header& header) { header[kSecond]["dtype"] = "F99"; }, {kSecond, "F99"}),
  };
}

void check_rows(const std::vector<BadWeights>& rows) {
  for (const BadWeights& row : rows) {
    INFO("situation: " << row.situation);
    const SmallJob job;
    const auto folder = job.folder() / "model";
    std::filesystem::create_directory(folder);
    auto config = job.config();
    row.configure(config);
    write_text(folder / "config.json", config.dump());
    write_text(folder / "model.safetensors", row.file());
    const Ended ended = run({trainyard(job.train(3, {"--model.config", "", "--model.init_from", folder.string()})),
                             {},
                             std::chrono::seconds(60)});
    check_failure(ended, 2, row.says);
    CHECK(saved_in(job.checkpoints()).empty());
  }
}

}  // namespace

TEST_CASE("bad weights: config.json and the files do not belong together") {
  check_rows(contradictions());
}

TEST_CASE("bad weights: files that are truncated or malicious") {
  check_rows(damages());
}

TEST_CASE("bad weights: evaluate ends with code 3 where they are no numbers, and names the first") {
  const SmallJob job;
  const Weights weights = whole_model();
  write_text(job.folder() / "model.safetensors",
             safetensors(weights.header.dump(), std::string(weights.data().size(), '\xff')));
  write_text(job.folder() / "ids.safetensors", token_file("input_ids", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  check_failure(run({trainyard({"evaluate", "--model", job.folder().string(), "--tokens",
                                (job.folder() / "ids.safetensors").string()})}),
                3, {job.folder().string(), "loss nan: the first bad tensor is model.layers.0.input_layernorm.weight"});
}

TEST_CASE("bad weights: what the rows above change works unchanged") {
  const SmallJob job;
  write_text(job.folder() / "model.safetensors", whole_model().file());
  const Ended ended =
      run({trainyard(job.train(1, {"--model.config", "", "--model.init_from", job.folder().string()}))});
  INFO(ended.all());
  CHECK(ended.code == 0);
}

}  // namespace trainyard::test
