#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "support/support.h"
#include "tokenizer/tokenizer.h"

// data/tokenizer-golden: what the reference tokenizers make of 72 strings.
namespace trainyard::tokenizer {
namespace {
using nlohmann::json;

struct Golden {
  std::unique_ptr<Tokenizer> tokenizer;
  json expected;
};

Golden load(const std::string& name) {
  const auto data = test::test_data();
  return {load_tokenizer(data / (name + "_tokenizer")),
          json::parse(read_file(data / "tokenizer-golden" / (name + ".json")))};
}

}  // namespace

TEST_CASE("goldens: ids and decoded text of every string are the reference's", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama3", "llama2", "t5", "torchtitan");
  const Golden golden = load(name);
  REQUIRE(golden.expected["cases"].size() == 72);
  for (const json& expected : golden.expected["cases"]) {
    INFO(name << ": " << expected["name"]);
    const auto ids = golden.tokenizer->encode(expected["text"].get<std::string>());
    CHECK(ids == expected["ids"].get<std::vector<int32_t>>());
    CHECK(golden.tokenizer->decode(ids) == expected["decoded"].get<std::string>());
    if (expected.contains("special_ids"))
      CHECK(golden.tokenizer->decode(expected["special_ids"].get<std::vector<int32_t>>()) ==
            expected["special_decoded"].get<std::string>());
  }
}

TEST_CASE("goldens: special tokens have their ids, and documents end with the right one", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const auto [name, eos, vocab] =
      GENERATE(table<std::string, std::string, int64_t>({{"qwen2", "<|endoftext|>", 151646},
                                                         {"llama3", "<|end_of_text|>", 128256},
                                                         {"llama2", "</s>", 32000},
                                                         {"t5", "</s>", 32100},
                                                         {"torchtitan", "<|end_of_text|>", 2020}}));
  const Golden golden = load(name);
  INFO(name);
  CHECK(golden.tokenizer->vocab_size() == vocab);
  CHECK(golden.tokenizer->eos_id() == golden.expected["special_tokens"][eos].get<int32_t>());
  for (const auto& [text, id] : golden.expected["special_tokens"].items()) {
    const std::array ids{id.get<int32_t>()};
    if (name == "qwen2" || name == "llama3" || name == "torchtitan" || text.starts_with("<extra_id_"))
      CHECK(golden.tokenizer->decode(ids) == text);
  }
}

}  // namespace trainyard::tokenizer
