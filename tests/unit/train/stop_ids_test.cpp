#include "assemble/stop_ids.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "support/support.h"

namespace trainyard::train {
namespace {

using Catch::Contains;
using Ids = std::vector<int32_t>;

constexpr int64_t kVocab = 300;

/// With the byte-level tokenizer, whose end of a document is 256.
Ids stops(const std::string& generation_config, const std::string& config_json) {
  return stop_ids_of({generation_config, config_json, "folder"}, *tokenizer::load_tokenizer("bytes"), kVocab);
}

}  // namespace

TEST_CASE("stop ids: of generation_config.json, config.json and the tokenizer the first that has one", "[train]") {
  const char* const none = R"({"eos_token_id": null, "top_p": 0.9})";
  CHECK(stops(R"({"eos_token_id": [7, 0]})", R"({"eos_token_id": 8})") == Ids{7, 0});
  CHECK(stops(R"({"eos_token_id": 7})", "") == Ids{7});
  CHECK(stops(none, R"({"eos_token_id": 8})") == Ids{8});
  CHECK(stops("{}", R"({"eos_token_id": [299, 8]})") == Ids{299, 8});
  CHECK(stops("", R"({"eos_token_id": 8})") == Ids{8});
  CHECK(stops(none, none) == Ids{256});
  CHECK(stops("", "{}") == Ids{256});
}

TEST_CASE("stop ids: what is no id of the vocabulary is an error with the file and the value", "[train]") {
  for (const char* const value : {"300", "-1", "[7, 300]", "[]", "\"</s>\"", "7.5", "true", "{}"}) {
    const std::string text = std::string(R"({"eos_token_id": )") + value + "}";
    CAPTURE(text);
    CHECK_THROWS_WITH(stops(text, ""), Contains("folder/generation_config.json: eos_token_id is ") &&
                                           Contains("from 0 to 299, or a list of such is needed"));
    CHECK_THROWS_WITH(stops("", text), Contains("folder/config.json: eos_token_id is "));
  }
  CHECK_THROWS_WITH(stops("[", ""), Contains("folder/generation_config.json: a JSON object is needed"));
}

TEST_CASE("stop ids: generation_config.json is that beside the weights", "[train]") {
  const test::TemporaryFolder folder;
  CHECK(generation_config_of(folder.path()).empty());
  write_file_atomically(folder / "generation_config.json", "{}");
  CHECK(generation_config_of(folder.path()) == "{}");
  CHECK(generation_config_of(folder / "model.safetensors") == "{}");
}

}  // namespace trainyard::train
