#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace trainyard::cli {

/// `trainyard tokenizer chat`.
struct ChatOptions {
  std::string tokenizer, template_file, tools_file, kwargs;
  bool asks = false;  ///< for an answer: the prompt of one stands at the end
  bool prints_ids = false;
};

CLI::App* add_chat_command(CLI::App& app, ChatOptions& options);

/// Prints what the template makes of the messages that are the JSON `input`.
void print_chat(const ChatOptions& options, const std::string& input);

/// What a prompt becomes by the template of its tokenizer.
struct PromptOptions {
  std::string system, template_file, kwargs;
};

/// --system, --template and --template-kwargs, which need the flag `as_chat`.
void add_prompt_options(CLI::App& app, PromptOptions& options, CLI::Option* as_chat);

struct ChatPrompt {
  std::string text;  ///< of a user's message, up to where the answer begins
  std::string end;   ///< the tokenizer's eos_token, which of a chat model ends a turn; "" where there is none
};

ChatPrompt chat_prompt(const PromptOptions& options, const std::string& tokenizer, const std::string& prompt);

}  // namespace trainyard::cli
