#include "cli/chat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <iostream>

#include "base/error.h"
#include "base/files.h"
#include "chat/folder.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::cli {
namespace {
using nlohmann::ordered_json;

chat::Settings settings_now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm now{};
  if (!localtime_r(&seconds, &now)) throw InputError("the system's time is no date");
  return {.now = now};
}

ordered_json kwargs_of(const std::string& written) {
  if (written.empty()) return ordered_json::object();
  ordered_json kwargs = chat::parse_ordered(written, "--template-kwargs");
  if (!kwargs.is_object())
    throw InputError(fmt::format("--template-kwargs: must be a JSON object, is {}", kwargs.type_name()));
  return kwargs;
}

void add_template_options(CLI::App& app, std::string& template_file, std::string& kwargs) {
  app.add_option("--template", template_file, "a chat template to take in place of the tokenizer's")->type_name("FILE");
  app.add_option("--template-kwargs", kwargs, "further variables of the template: '{\"enable_thinking\": false}'")
      ->type_name("JSON");
}

chat::Conversation conversation_of(const ChatOptions& options, const std::string& input) {
  chat::Conversation conversation = chat::read_conversation(chat::parse_ordered(input, "stdin"), "stdin");
  conversation.further = kwargs_of(options.kwargs);
  conversation.add_generation_prompt = options.asks;
  if (options.tools_file.empty()) return conversation;
  const ordered_json tools = chat::parse_ordered(read_file(options.tools_file), options.tools_file);
  if (!tools.is_array())
    throw InputError(fmt::format("{}: must be a list of tools, is {}", options.tools_file, tools.type_name()));
  const ordered_json whole{{"messages", ordered_json::array()}, {"tools", tools}};
  conversation.tools = chat::read_conversation(whole, options.tools_file).tools;
  return conversation;
}

}  // namespace

CLI::App* add_chat_command(CLI::App& app, ChatOptions& options) {
  CLI::App* const command =
      app.add_subcommand("chat", "JSON messages on stdin to the text that the chat template makes of them");
  command->add_option("--tokenizer", options.tokenizer, "the folder of a tokenizer with a chat template")
      ->required()
      ->type_name("PATH");
  command->add_flag("--add-generation-prompt", options.asks, "end where the assistant's answer begins");
  command->add_option("--tools", options.tools_file, "a JSON list of the tools that the model may call")
      ->type_name("FILE");
  command->add_flag("--ids", options.prints_ids, "print ids, special tokens parsed and nothing added");
  add_template_options(*command, options.template_file, options.kwargs);
  return command;
}

void print_chat(const ChatOptions& options, const std::string& input) {
  const chat::Conversation conversation = conversation_of(options, input);
  const bool has_tools = !conversation.tools.is_null();
  const auto text =
      chat::render_conversation(chat::read_tokenizer_chat(options.tokenizer, options.template_file, has_tools),
                                conversation, settings_now())
          .text;
  if (!options.prints_ids) return static_cast<void>(std::cout << text);
  const auto tokenizer = tokenizer::load_tokenizer(options.tokenizer, tokenizer::SpecialTokensAre::Parsed);
  fmt::print("{}\n", fmt::join(tokenizer->encode(text), " "));
}

void add_prompt_options(CLI::App& app, PromptOptions& options, CLI::Option* as_chat) {
  app.add_option("--system", options.system, "what the system's message says, before the prompt")->needs(as_chat);
  add_template_options(app, options.template_file, options.kwargs);
  for (const char* const name : {"--template", "--template-kwargs"}) app.get_option(name)->needs(as_chat);
}

ChatPrompt chat_prompt(const PromptOptions& options, const std::string& tokenizer, const std::string& prompt) {
  chat::Conversation conversation;
  if (!options.system.empty()) conversation.messages.push_back({{"role", "system"}, {"content", options.system}});
  conversation.messages.push_back({{"role", "user"}, {"content", prompt}});
  conversation.further = kwargs_of(options.kwargs);
  conversation.add_generation_prompt = true;
  const chat::TokenizerChat chat = chat::read_tokenizer_chat(tokenizer, options.template_file, false);
  return {chat::render_conversation(chat, conversation, settings_now()).text, chat.tokens.value("eos_token", "")};
}

}  // namespace trainyard::cli
