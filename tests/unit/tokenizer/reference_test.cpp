#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "support/support.h"
#include "tokenizer/tokenizer.h"

// reference.json: folders, texts, and what `tokenizers` and transformers make of them; made by added_tokens_reference.
namespace trainyard::tokenizer {
namespace {
using nlohmann::json;

std::string decode_base64(const std::string& written) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char digit : written) {
    if (digit == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(digit));
    if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8));
  }
  return bytes;
}

void write_files(const test::TemporaryFolder& folder, const json& files) {
  for (const auto& [name, content] : files.items()) {
    const bool is_binary = name.ends_with(".model");
    const std::string text = content.is_string() ? content.get<std::string>() : content.dump();
    write_file_atomically(folder / name, is_binary ? decode_base64(text) : text);
  }
}

}  // namespace

TEST_CASE("reference: added tokens, spaces before pieces and odd files come to the reference's ids", "[tokenizer]") {
  const json reference = json::parse(read_file(TRAINYARD_TOKENIZER_REFERENCE));
  REQUIRE(reference["cases"].size() > 50);
  for (const json& expected : reference["cases"]) {
    const test::TemporaryFolder folder;
    write_files(folder, expected["files"]);
    const auto as_text = load_tokenizer(folder.path()),
               parsed = load_tokenizer(folder.path(), SpecialTokensAre::Parsed);
    for (size_t i = 0; i < expected["texts"].size(); ++i) {
      const auto text = expected["texts"][i].get<std::string>();
      INFO(expected["name"] << ": '" << text << "'");
      CHECK(as_text->encode(text) == expected["text"][i].get<std::vector<int32_t>>());
      CHECK(parsed->encode(text) == expected["parse"][i].get<std::vector<int32_t>>());
    }
  }
}

}  // namespace trainyard::tokenizer
