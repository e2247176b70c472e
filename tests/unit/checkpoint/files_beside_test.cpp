// What goes with a model's weights as it came.
#include "checkpoint/files_beside.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/convert.h"
#include "checkpoint/open_weights.h"
#include "ranks.h"
#include "support/captured_log.h"
#include "support/support.h"

namespace trainyard::checkpoint {
namespace {

using Catch::Contains;
using test::TemporaryFolder;
namespace fs = std::filesystem;

std::vector<std::string> names_of(const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.filename().string());
  return names;
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A checkpoint of step 50 by a world of 2 with these files beside its weights, which rank 0 has.
SaveResult save(const fs::path& folder, const FilesBeside& files, const std::string& form) {
  rendezvous::MemoryStore store;
  return run_ranks(2, [&](int rank) {
    Snapshot snapshot = snapshot_of(50, rank, 2);
    snapshot.state["config_json"] = R"({"model_type": "llama", "of_nobody": [1, null]})";
    if (rank == 0) snapshot.files = std::make_shared<FilesBeside>(files);
    Saver saver(options_of(folder, rank, 2), store);
    const auto gather = [](const Shard& each) { return shard_of(each.name, each.global_shape, 0, 1, 50).local; };
    return form == "full" ? saver.save_full(snapshot, gather) : saver.save(snapshot);
  })[0];
}

}  // namespace

TEST_CASE("files_beside: small files go along by name, and weights, what describes them, and hidden names do not",
          "[checkpoint]") {
  const TemporaryFolder folder;
  for (const char* const name :
       {"config.json", "model.safetensors", "model-00001-of-00002.safetensors", "model.safetensors.index.json",
        "pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "consolidated.00.pth", "model.gguf",
        "checkpoint.json", "optimizer.safetensors", "adapter_config.json", "hf_quant_config.json", ".gitattributes"})
    write(folder / name, "stays");
  const std::vector<std::string> go{"LICENSE",          "README.md",       "chat_template.jinja",
                                    "generation_config.json", "modeling_own.py", "tokenizer.json"};
  for (const std::string& name : go) write(folder / name, "goes");
  fs::create_directory(folder / "onnx");
  CHECK(names_of(files_beside(folder.path())) == go);
  CHECK(names_of(files_beside(folder / "model.safetensors")) == go);
}

TEST_CASE("files_beside: links are read through, and a line names what is too large, a folder, or a link to nothing",
          "[checkpoint]") {
  const TemporaryFolder folder, elsewhere;
  write(folder / "config.json", "{}");
  write(elsewhere / "blob", "licence");
  fs::create_symlink(elsewhere / "blob", folder / "LICENSE");
  fs::create_symlink(elsewhere / "gone", folder / "dangling.txt");
  for (const auto& [name, bytes] : {std::pair("large.txt", kMaxBytesBeside + 1), std::pair("just.txt", kMaxBytesBeside),
                                    std::pair("tokenizer.json", kMaxBytesBeside + 1)}) {
    write(folder / name, "");
    fs::resize_file(folder / name, bytes);
  }
  fs::create_directory(folder / "original");
  const auto files = files_beside(folder.path());
  CHECK(names_of(files) == std::vector<std::string>{"LICENSE", "just.txt", "tokenizer.json"});
  CHECK(read_files({files.data(), 1})[0].content == "licence");
  const test::CapturedLog log;
  warn_of_left_behind(folder.path());
  CHECK_THAT(log.text(), Contains("dangling.txt (a link to nothing), large.txt (32") && Contains("original (a folder)") &&
                             !Contains("just.txt") && !Contains("tokenizer.json"));
}

TEST_CASE("files_beside: beside a file of weights that is in no model's folder it is the tokenizer's alone",
          "[checkpoint]") {
  const TemporaryFolder folder;
  for (const char* const name : {"model.pt", "holiday.jpg", "tokenizer.model", "tokenizer_config.json"})
    write(folder / name, "x");
  CHECK(names_of(files_beside(folder / "model.pt")) ==
        std::vector<std::string>{"tokenizer.model", "tokenizer_config.json"});
}

TEST_CASE("tokenizer_files: of a folder all, of a file itself and what it is read with", "[checkpoint]") {
  const TemporaryFolder folder;
  for (const char* const name :
       {"tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "tokenizer_config.json", "chat_template.jinja"})
    write(folder / name, "x");
  CHECK(tokenizer_files(folder.path()).size() == 6);
  CHECK(names_of(tokenizer_files(folder / "tokenizer.model")) ==
        std::vector<std::string>{"tokenizer.model", "tokenizer_config.json", "chat_template.jinja"});
  CHECK(names_of(tokenizer_files(folder / "merges.txt")) ==
        std::vector<std::string>{"merges.txt", "vocab.json", "tokenizer_config.json", "chat_template.jinja"});
  CHECK(tokenizer_files("bytes").empty());
  CHECK(tokenizer_files("").empty());
}

TEST_CASE("files beside: a checkpoint in either form holds them, and they leave it every way", "[checkpoint]") {
  const std::string form = GENERATE(as<std::string>(), "sharded", "full");
  CAPTURE(form);
  const TemporaryFolder folder;
  REQUIRE(save(folder / "run", {{"of_nobody.txt", "kept"}, {"tokenizer.json", "{}"}}, form).saved);
  const fs::path step = folder / "run/step-50";
  const Checkpoint checkpoint(step);
  CHECK_FALSE(find_damage(checkpoint).has_value());
  CHECK(wrong_elements(checkpoint, 1, 3) == 0);

  const auto weights = open_weights(step);
  const ModelFiles beside{config_json_of(step), files_beside(step)};
  export_to_hugging_face(checkpoint, {.output = folder / "exported"});
  write_hugging_face(*weights, beside, {.output = folder / "converted"});
  write_dcp(*weights, beside, 2, {.output = folder / "dcp"});
  write_torch(*weights, beside, {.output = folder / "torch"});
  reshard(checkpoint, 3, folder / "resharded");
  export_to_hugging_face(Checkpoint(folder / "resharded/step-50"), {.output = folder / "exported again"});
  for (const char* const out : {"exported", "converted", "dcp", "torch", "exported again"}) {
    CAPTURE(out);
    CHECK(read_file(folder / out / "of_nobody.txt") == "kept");
    CHECK(read_file(folder / out / "tokenizer.json") == "{}");
    CHECK(nlohmann::json::parse(read_file(folder / out / "config.json")).at("of_nobody") == nlohmann::json{1, nullptr});
  }
  CHECK_FALSE(find_damage(Checkpoint(folder / "resharded/step-50")).has_value());

  write(step / "of_nobody.txt", "lost");
  CHECK_THAT(find_damage(checkpoint).value_or(""), Contains("of_nobody.txt"));
}

TEST_CASE("config.json: what it says of the stored weights is true of those that are written", "[checkpoint]") {
  const auto written = [](const char* given) {
    return nlohmann::json::parse(config_text({{"config_json", given}}, "here", DType::BFloat16));
  };
  using nlohmann::json;
  CHECK(written(R"({"a": {"b": null}})") == json{{"a", {{"b", nullptr}}}, {"torch_dtype", "bfloat16"}});
  CHECK(written(R"({"dtype": "float32"})") == json{{"dtype", "bfloat16"}});
  CHECK(written(R"({"dtype": "float32", "torch_dtype": "float16"})") ==
        json{{"dtype", "bfloat16"}, {"torch_dtype", "bfloat16"}});
  CHECK(written(R"({"quantization_config": {"quant_method": "fp8"}, "compression_config": {}, "torch_dtype": "x"})") ==
        json{{"torch_dtype", "bfloat16"}});
  CHECK_THAT(config_text({{"config_json", R"({"a": 36893488147419103232})"}}, "here", DType::BFloat16),
             Contains("\"a\": 36893488147419103232,"));
}

}  // namespace trainyard::checkpoint
