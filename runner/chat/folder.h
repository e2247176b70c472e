#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "chat/template.h"

namespace trainyard::chat {

/// JSON whose objects keep the order of their keys, as tojson prints them. Throws InputError, beginning with `where`.
nlohmann::ordered_json parse_ordered(std::string_view text, const std::string& where);

/// What a chat template is asked to print.
struct Conversation {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools = nullptr;  ///< null where there are none
  nlohmann::ordered_json documents = nullptr;
  nlohmann::ordered_json further = nlohmann::ordered_json::object();  ///< variables of the template's own
  bool add_generation_prompt = false;
};

/// [{role, content}, …], or {"messages": […], "tools": […], "documents": […]}. Reasoning stands in a message under
/// each of the names that templates read, as in transformers. Throws InputError, beginning with `where`.
Conversation read_conversation(const nlohmann::ordered_json& json, const std::string& where);

/// The chat template of a tokenizer, and its special tokens, which the template has as variables.
struct TokenizerChat {
  Template text;
  nlohmann::ordered_json tokens;  ///< "bos_token" and so on
};

/// Reads the template of the tokenizer at `path`, a folder or a file of it: that of `file` where one is given, else
/// chat_template.jinja, else the chat_template of tokenizer_config.json, else that of chat_template.json. Of several
/// with names it is "tool_use" where there are tools, and "default" elsewhere. Throws InputError, naming the file,
/// where there is none or it is malformed.
TokenizerChat read_tokenizer_chat(const std::filesystem::path& path, const std::filesystem::path& file, bool has_tools);

/// Throws InputError as Template::render().
Rendered render_conversation(const TokenizerChat& chat, const Conversation& conversation, const Settings& settings);

}  // namespace trainyard::chat
