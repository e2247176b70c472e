#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "chat/folder.h"
#include "chat/template.h"

// reference.json: templates, and what transformers makes of them; made by make_reference.py.
namespace trainyard::chat {
namespace {
using nlohmann::ordered_json;

/// Null where it is refused, with `why`.
ordered_json text_of(const ordered_json& expected, const std::string& source, const ordered_json& variables,
                     std::string& why) {
  try {
    const Template text(source, "template");
    if (!expected.contains("chat")) return text.render(variables, {}).text;
    ordered_json further = expected["chat"];
    Conversation conversation = read_conversation(further, "chat");
    conversation.add_generation_prompt = further["add_generation_prompt"].get<bool>();
    for (const char* const name : {"messages", "tools", "add_generation_prompt"}) further.erase(name);
    conversation.further = further;
    const Rendered rendered = render_conversation({text, ordered_json::object()}, conversation, {});
    ordered_json spans = ordered_json::array();
    for (const auto& span : rendered.generated) spans.push_back({span.begin, span.end});
    CHECK(spans == expected.value("generated", ordered_json::array()));
    return rendered.text;
  } catch (const InputError& error) {
    why = error.what();
    return nullptr;
  }
}

bool is_not_offered(const std::string& why) {
  return why.find("offered") != std::string::npos;
}

}  // namespace

TEST_CASE("reference: templates print what transformers prints, and are refused where it refuses them", "[chat]") {
  const ordered_json reference = ordered_json::parse(read_file(TRAINYARD_CHAT_REFERENCE));
  REQUIRE(reference["cases"].size() > 900);
  int equal = 0, refused = 0;
  for (const ordered_json& expected : reference["cases"]) {
    std::string why;
    const auto source =
        (expected.contains("chat") ? reference["chat_templates"][expected["chat_template"].get<size_t>()]
                                   : expected["template"])
            .get<std::string>();
    const ordered_json text = text_of(expected, source, reference["variables"], why);
    INFO(source << "\n" << expected.value("chat", ordered_json()) << "\n" << why);
    if (is_not_offered(why)) {
      ++refused;
      continue;
    }
    ++equal;
    CHECK(text == expected.value("text", ordered_json()));
  }
  CAPTURE(equal, refused);
  CHECK(equal > 1140);
  CHECK(refused < 25);
}

}  // namespace trainyard::chat
