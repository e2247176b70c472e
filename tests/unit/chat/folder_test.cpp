#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "chat/folder.h"
#include "support/support.h"

namespace trainyard::chat {
namespace {
using Catch::Matchers::Contains;

std::string printed(const std::filesystem::path& folder, const std::string& json, bool has_tools = false) {
  const Conversation conversation = read_conversation(parse_ordered(json, "stdin"), "stdin");
  return render_conversation(read_tokenizer_chat(folder, {}, has_tools), conversation, {}).text;
}

constexpr const char* kHello = R"([{"role": "user", "content": "Hi"}])";

}  // namespace

TEST_CASE("folder: chat_template.jinja goes before tokenizer_config.json, and that before chat_template.json",
          "[chat]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(printed(folder.path(), kHello), Contains("no chat template"));
  write_file_atomically(folder / "chat_template.json", R"({"chat_template": "old {{ messages[0].content }}"})");
  CHECK(printed(folder.path(), kHello) == "old Hi");
  write_file_atomically(
      folder / "tokenizer_config.json",
      R"({"chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "bos_token": {"content": "<s>"}})");
  write_file_atomically(folder / "special_tokens_map.json", R"({"bos_token": "<other>", "eos_token": "</s>"})");
  CHECK(printed(folder.path(), kHello) == "<s>Hi</s>");
  write_file_atomically(folder / "chat_template.jinja", "{{ messages|length }}\n");
  CHECK(printed(folder.path(), kHello) == "1");
}

TEST_CASE("folder: of several templates the one for tools or the default counts", "[chat]") {
  const test::TemporaryFolder folder;
  write_file_atomically(
      folder / "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})");
  CHECK(printed(folder.path(), kHello) == "D");
  CHECK(printed(folder.path(), kHello, true) == "T");
  write_file_atomically(folder / "tokenizer_config.json", R"({"chat_template": [{"name": "x", "template": "T"}]})");
  CHECK_THROWS_WITH(printed(folder.path(), kHello), Contains("\"default\""));
  write_file_atomically(folder / "tokenizer_config.json", R"({"chat_template": 3})");
  CHECK_THROWS_WITH(printed(folder.path(), kHello), Contains("must be a string or a list"));
  write_file_atomically(folder / "tokenizer_config.json", R"({"chat_template": "\n{{ x.y }}"})");
  CHECK_THROWS_WITH(printed(folder.path(), kHello),
                    Contains("tokenizer_config.json: chat_template:2: 'x' is undefined"));
}

TEST_CASE("folder: the template that Qwen2 came with prints its chat", "[chat]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const auto folder = test::test_data() / "qwen2_tokenizer";
  CHECK(
      printed(folder, R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]})") ==
      "<|im_start|>system\nYou are a helpful "
      "assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo<|im_end|>\n");
}

TEST_CASE("conversation: what is no list of messages is refused, and where", "[chat]") {
  CHECK_THROWS_WITH(printed("bytes", "{"), Contains("stdin: "));
  CHECK_THROWS_WITH(printed("bytes", "{}"), Contains("stdin: must be a list of messages"));
  CHECK_THROWS_WITH(printed("bytes", "[1]"), Contains("messages must be objects"));
  CHECK_THROWS_WITH(printed("bytes", R"([{"content": "x"}])"), Contains("message 0 must have a role"));
  CHECK_THROWS_WITH(printed("bytes", R"({"messages": [], "tools": {}})"), Contains("tools must be a list"));
}

}  // namespace trainyard::chat
