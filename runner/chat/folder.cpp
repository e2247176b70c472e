#include "chat/folder.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/json_depth.h"

namespace trainyard::chat {
namespace {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr size_t kMaxBytes = size_t{64} << 20;

/// None where the file is not there.
std::optional<ordered_json> object_in(const fs::path& file) {
  if (!fs::is_regular_file(file)) return std::nullopt;
  ordered_json parsed = parse_ordered(read_file(file, kMaxBytes), file.string());
  if (!parsed.is_object())
    throw InputError(fmt::format("{}: must be an object, is {}", file.string(), parsed.type_name()));
  return parsed;
}

/// Every token that has a role. What is there already stays.
void add_tokens(const ordered_json& config, ordered_json& tokens) {
  for (const auto& [name, value] : config.items()) {
    if (!name.ends_with("_token") || tokens.contains(name)) continue;
    if (value.is_string()) tokens[name] = value;
    if (value.is_object() && value.contains("content") && value["content"].is_string()) tokens[name] = value["content"];
  }
}

std::string named_template(const ordered_json& list, bool has_tools, const std::string& where) {
  const auto find = [&](std::string_view wanted) -> const ordered_json* {
    for (const ordered_json& each : list)
      if (each.is_object() && each.value("name", ordered_json()) == wanted && each.contains("template") &&
          each["template"].is_string())
        return &each["template"];
    return nullptr;
  };
  if (const auto* const for_tools = find("tool_use"); has_tools && for_tools) return for_tools->get<std::string>();
  if (const auto* const otherwise = find("default")) return otherwise->get<std::string>();
  throw InputError(fmt::format("{}: none of the templates has the name \"default\"", where));
}

/// None where the file has no chat_template.
std::optional<Template> template_of(const std::optional<ordered_json>& config, const fs::path& file, bool has_tools) {
  if (!config || !config->contains("chat_template") || (*config)["chat_template"].is_null()) return std::nullopt;
  const ordered_json& value = (*config)["chat_template"];
  const std::string where = file.string() + ": chat_template";
  if (value.is_string()) return Template(value.get<std::string>(), where);
  if (value.is_array()) return Template(named_template(value, has_tools, where), where);
  throw InputError(
      fmt::format("{}: must be a string or a list of {{name, template}}, is {}", where, value.type_name()));
}

Template found_template(const fs::path& folder, const std::optional<ordered_json>& config, bool has_tools) {
  const fs::path file = folder / "chat_template.jinja";
  if (fs::is_regular_file(file)) return {read_file(file, kMaxBytes), file.string()};
  if (auto found = template_of(config, folder / "tokenizer_config.json", has_tools)) return *std::move(found);
  const fs::path older = folder / "chat_template.json";
  if (auto found = template_of(object_in(older), older, has_tools)) return *std::move(found);
  throw InputError(
      fmt::format("{}: no chat template: neither chat_template.jinja, nor a chat_template in tokenizer_config.json",
                  folder.string()));
}

/// A message's reasoning has three names, as in transformers.
ordered_json with_reasoning(const ordered_json& message) {
  for (const char* const name : {"reasoning_content", "thinking", "reasoning"}) {
    if (!message.contains(name) || message[name].is_null()) continue;
    const ordered_json reasoning = message[name];
    ordered_json made{{"thinking", reasoning}};
    for (const auto& [key, value] : message.items()) made[key] = value;
    made["reasoning_content"] = reasoning;
    return made;
  }
  return message;
}

/// What is null in a message counts as absent, as in transformers.
ordered_json without_nulls(const ordered_json& message) {
  ordered_json made = ordered_json::object();
  for (const auto& [key, value] : message.items())
    if (!value.is_null()) made[key] = value;
  return made;
}

/// A list of objects, or null where it is not given.
ordered_json list_in(const ordered_json& json, const std::string& name, const std::string& where) {
  const ordered_json list = json.value(name, ordered_json());
  if (!list.is_null() && !list.is_array())
    throw InputError(fmt::format("{}: {} must be a list, is {}", where, name, list.type_name()));
  for (const ordered_json& each : list)
    if (!each.is_object())
      throw InputError(fmt::format("{}: {} must be objects, one is {}", where, name, each.type_name()));
  return list;
}

}  // namespace

ordered_json parse_ordered(std::string_view text, const std::string& where) {
  if (!is_shallow_json(text)) throw InputError(fmt::format("{}: the brackets are too deep", where));
  try {
    return ordered_json::parse(text);
  } catch (const ordered_json::exception& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
}

Conversation read_conversation(const ordered_json& json, const std::string& where) {
  const ordered_json whole = json.is_array() ? ordered_json{{"messages", json}} : json;
  if (!whole.is_object() || !whole.contains("messages"))
    throw InputError(fmt::format("{}: must be a list of messages, or an object with \"messages\"", where));
  Conversation conversation;
  for (const ordered_json& message : list_in(whole, "messages", where)) {
    if (!message.contains("role") || !message["role"].is_string())
      throw InputError(fmt::format("{}: message {} must have a role, a string", where, conversation.messages.size()));
    conversation.messages.push_back(with_reasoning(without_nulls(message)));
  }
  conversation.tools = list_in(whole, "tools", where);
  conversation.documents = list_in(whole, "documents", where);
  return conversation;
}

TokenizerChat read_tokenizer_chat(const fs::path& path, const fs::path& file, bool has_tools) {
  const bool has_folder = path != "bytes";
  if (has_folder && !fs::exists(path)) throw InputError(fmt::format("{}: no such tokenizer", path.string()));
  if (!has_folder && file.empty()) throw InputError("the tokenizer 'bytes' has no chat template; give a file of one");
  if (!has_folder) return {Template(read_file(file, kMaxBytes), file.string()), ordered_json::object()};
  const fs::path folder = fs::is_directory(path) ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
  const auto config = object_in(folder / "tokenizer_config.json");
  ordered_json tokens = ordered_json::object();
  if (config) add_tokens(*config, tokens);
  if (const auto map = object_in(folder / "special_tokens_map.json")) add_tokens(*map, tokens);
  Template text =
      file.empty() ? found_template(folder, config, has_tools) : Template(read_file(file, kMaxBytes), file.string());
  return {std::move(text), std::move(tokens)};
}

Rendered render_conversation(const TokenizerChat& chat, const Conversation& conversation, const Settings& settings) {
  ordered_json variables = chat.tokens;
  for (const auto& [name, value] : conversation.further.items()) variables[name] = value;
  variables["messages"] = conversation.messages;
  variables["tools"] = conversation.tools;
  variables["documents"] = conversation.documents;
  variables["add_generation_prompt"] = conversation.add_generation_prompt;
  return chat.text.render(variables, settings);
}

}  // namespace trainyard::chat
