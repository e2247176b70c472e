#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <openssl/sha.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "support/support.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {
namespace {
using nlohmann::json;

std::string sha256(const std::vector<int32_t>& ids) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(ids.data()), ids.size() * sizeof(int32_t),
         digest);  // this machine is little-endian
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

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

TEST_CASE("goldens: whole files in one call are the reference's, id by id", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama3", "llama2", "t5", "torchtitan");
  const Golden golden = load(name);
  for (const json& expected : golden.expected["texts"]) {
    INFO(name << ": " << expected["file"]);
    const auto ids = golden.tokenizer->encode(read_file(test::test_data() / expected["file"].get<std::string>()));
    REQUIRE(ids.size() == expected["tokens"].get<size_t>());
    CHECK(std::vector<int32_t>(ids.begin(), ids.begin() + 32) == expected["first"].get<std::vector<int32_t>>());
    CHECK(std::vector<int32_t>(ids.end() - 16, ids.end()) == expected["last"].get<std::vector<int32_t>>());
    CHECK(sha256(ids) == expected["sha256_int32_le"].get<std::string>());
  }
}

TEST_CASE("long words: a megabyte without a space takes about a second, not hours", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama3");
  const auto tokenizer = load_tokenizer(test::test_data() / (name + "_tokenizer"));
  for (const char c : {'a', ' ', '\n', '.'}) {
    const std::string text(size_t{1} << 20, c);
    const auto ids = tokenizer->encode(text);
    CHECK((tokenizer->decode(ids) == text));
    CHECK(ids.size() < text.size());
  }
}

}  // namespace trainyard::tokenizer
