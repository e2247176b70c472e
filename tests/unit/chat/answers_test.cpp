// Where the assistant's answers are in what a chat template prints.
#include "chat/answers.h"

#include <catch2/catch.hpp>

#include "base/error.h"

namespace trainyard::chat {
namespace {
using Catch::Matchers::Contains;

constexpr const char* kChatML =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";
constexpr const char* kTalk =
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}])";

std::vector<std::string> answers(const std::string& source, const std::string& messages) {
  const TokenizerChat chat{Template(source, "template"), nlohmann::ordered_json::object()};
  const Rendered rendered = render_answers(chat, read_conversation(parse_ordered(messages, "stdin"), "stdin"), {});
  std::vector<std::string> found;
  for (const auto& [begin, end] : rendered.generated) found.push_back(rendered.text.substr(begin, end - begin));
  return found;
}

}  // namespace

TEST_CASE("answers: where the template does not mark them, each is what comes behind the prompt for it", "[chat]") {
  CHECK(answers(kChatML, kTalk) == std::vector<std::string>{"b</>\n", "d</>\n"});
  CHECK(answers(kChatML, R"([{"role": "assistant", "content": "x"}, {"role": "assistant", "content": "y"},
                             {"role": "user", "content": "z"}])") == std::vector<std::string>{"x</>\n", "y</>\n"});
  CHECK(answers(kChatML, R"([{"role": "user", "content": "z"}])").empty());
  // A template that knows no add_generation_prompt: its answers begin where the messages before them end.
  CHECK(answers("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", kTalk) ==
        std::vector<std::string>{"assistant: b\n", "assistant: d\n"});
}

TEST_CASE("answers: where the template marks them, its marks count", "[chat]") {
  const std::string marked =
      "{% for m in messages %}{% if m.role == 'assistant' %}[{% generation %}{{ m.content }}.{% endgeneration %}]"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}";
  CHECK(answers(marked, kTalk) == std::vector<std::string>{"b.", "d."});
  CHECK(Template(marked, "t").marks_answers());
  CHECK_FALSE(Template(kChatML, "t").marks_answers());
  CHECK(Template(
            "{% macro m() %}{% for i in [] %}{% else %}{% generation %}{% endgeneration %}{% endfor %}{% endmacro %}",
            "t")
            .marks_answers());
  // The tag is there, though nothing of it is printed: the template has no answers then.
  CHECK(
      answers("{% if false %}{% generation %}{% endgeneration %}{% endif %}{{ messages[0].content }}", kTalk).empty());
}

TEST_CASE("answers: what is not certain is refused with the message and what to do", "[chat]") {
  // As Qwen3's, which prints an empty thought before the last answer alone.
  const std::string thoughtful =
      "{% for m in messages %}<{{ m.role }}>{% if loop.last and m.role == 'assistant' %}<think></think>{% endif %}"
      "{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  CHECK_THROWS_WITH(
      answers(thoughtful, kTalk),
      "message 2 is an answer, but where it begins and ends is not certain, as template prints it otherwise "
      "where other messages follow; name a template that marks the answers by {% generation %} in "
      "data.chat_template, or set data.loss_on to all");
  CHECK(answers(thoughtful, R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])") ==
        std::vector<std::string>{"<think></think>b"});
  CHECK_THROWS_WITH(
      answers("{{ messages|length }}{% if add_generation_prompt %}?{% endif %}", kTalk),
      Contains("message 2 is an answer") && Contains("template prints what comes before it otherwise where "
                                                     "it is there; name a template"));
  CHECK_THROWS_WITH(answers("{{ messages[0].content.x.y }}", kTalk), Contains("template:1: "));
  CHECK_THROWS_WITH(
      answers("{% if messages|length < 4 %}{{ raise_exception('too few') }}{% endif %}", kTalk),
      Contains("the first message alone cannot be printed: template:1: the template says: too few; name a "
               "template"));
}

}  // namespace trainyard::chat
