#include <stdio.h>
#include <sys/wait.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "base/files.h"
#include "support/support.h"

namespace trainyard {
namespace {

using Catch::Contains;

struct ChatRan {
  int code = 0;
  std::string output;  ///< both streams
};

/// `trainyard tokenizer chat ARGUMENTS` with messages on stdin.
ChatRan run_chat(const std::string& arguments, const std::string& messages) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "messages.json", messages);
  const std::string command = std::string(TRAINYARD_PROGRAM) + " tokenizer chat " + arguments + " 2>&1 < " +
                              (folder / "messages.json").string();
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return {-1, "popen"};
  ChatRan ran;
  std::array<char, 4096> piece{};
  while (const size_t n = ::fread(piece.data(), 1, piece.size(), pipe)) ran.output.append(piece.data(), n);
  ran.code = WEXITSTATUS(::pclose(pipe));
  return ran;
}

constexpr const char* kUser = R"([{"role": "user", "content": "Hi"}])";

}  // namespace

TEST_CASE("tokenizer chat: a template of its own gets tools, further variables and the time", "[cli]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "t.jinja",
                        "{{ messages[0].content }} {{ tools|tojson }} {{ think }} {{ strftime_now('%Y')|length }} "
                        "{{ add_generation_prompt }}");
  write_file_atomically(folder / "tools.json", R"([{"name": "f", "a": 1}])");
  const std::string file = "--tokenizer bytes --template " + (folder / "t.jinja").string();
  const ChatRan ran = run_chat(file + " --tools " + (folder / "tools.json").string() +
                                   " --template-kwargs '{\"think\": false}' --add-generation-prompt",
                               kUser);
  CHECK(ran.code == 0);
  CHECK(ran.output == R"(Hi [{"name": "f", "a": 1}] False 4 True)");
  CHECK(run_chat(file + " --ids", kUser).output.starts_with("72 105 32 110 117"));
}

TEST_CASE("tokenizer chat: what is wrong is one error with exit code 2", "[cli]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "t.jinja", "a\n{{ x.y }}");
  const std::string file = " --tokenizer bytes --template " + (folder / "t.jinja").string();
  struct Row {
    std::string arguments, messages, says;
  };
  const std::array<Row, 6> rows{{
      {file, kUser, "t.jinja:2: 'x' is undefined"},
      {file, "[", "stdin: "},
      {file, "3", "stdin: must be a list of messages"},
      {file + " --template-kwargs 3", kUser, "--template-kwargs: must be a JSON object"},
      {"--tokenizer bytes", kUser, "'bytes' has no chat template"},
      {"--tokenizer " + folder.path().string(), kUser, "no chat template"},
  }};
  for (const Row& row : rows) {
    const ChatRan ran = run_chat(row.arguments, row.messages);
    CHECK(ran.code == 2);
    CHECK_THAT(ran.output, Contains(row.says));
  }
}

TEST_CASE("tokenizer chat: the ids of Qwen2's template are those of transformers", "[cli]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string folder = (test::test_data() / "qwen2_tokenizer").string();
  CHECK(run_chat("--tokenizer " + folder + " --ids --add-generation-prompt", kUser).output ==
        "151644 8948 198 2610 525 264 10950 17847 13 151645 198 151644 872 198 13048 151645 198 151644 77091 198\n");
}

}  // namespace trainyard
