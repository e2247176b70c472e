#include "cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <optional>

#include "assemble/device.h"
#include "assemble/exchange.h"
#include "assemble/stop_ids.h"
#include "assemble/threads.h"
#include "base/error.h"
#include "checkpoint/open_weights.h"
#include "cli/chat.h"
#include "cli/hub_names.h"
#include "cli/parse.h"
#include "cli/session.h"
#include "ops/threads.h"
#include "run/answers.h"
#include "run/generate.h"
#include "run/loaded_model.h"
#include "tokenizer/text_stream.h"

namespace trainyard::cli {
namespace {

void print_now(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

void add_sampling(CLI::App& app, train::Sampling& sampling) {
  app.add_option("--max-new-tokens", sampling.max_new_tokens, "at most so many tokens")
      ->check(number_where([](double value) { return value >= 1; }, "a whole number from 1 on"))
      ->capture_default_str();
  app.add_option("--temperature", sampling.temperature, "0: always the likeliest token")
      ->check(number_where([](double value) { return value >= 0; }, "a number from 0 on"))
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "choose among the likeliest tokens of this probability")
      ->check(number_where([](double value) { return value > 0 && value <= 1; }, "a number above 0 and up to 1"))
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "equal seeds give equal texts")->capture_default_str();
}

struct Asked {
  std::string prompt;
  std::string tokenizer;  ///< "": the model's own
  tokenizer::SpecialTokensAre special;
  std::optional<PromptOptions> chat;  ///< none: the prompt is the text that is continued
};

/// What a chat template makes of the prompt; the prompt itself where none is wanted.
ChatPrompt prompt_of(const Asked& asked, const std::string& tokenizer) {
  return asked.chat ? chat_prompt(*asked.chat, tokenizer, asked.prompt) : ChatPrompt{asked.prompt, ""};
}

/// Rank 0 prints each token as it comes.
void continue_text(const train::LoadedModel& loaded, const Asked& asked, train::Sampling sampling,
                   const train::World& world) {
  const std::string& path = asked.tokenizer.empty() ? loaded.tokenizer : asked.tokenizer;
  if (path.empty()) throw InputError("generate: the checkpoint records no tokenizer; name one with --tokenizer");
  const auto tokenizer =
      train::made_on_every_rank(world.comm, [&] { return tokenizer::load_tokenizer(path, asked.special); });
  ChatPrompt prompt = train::made_on_every_rank(world.comm, [&] { return prompt_of(asked, path); });
  train::share_from_rank_0(world.comm, prompt.text, "prompt");  // a template may print the time
  sampling.vocab_size = tokenizer->vocab_size();
  const auto sources = [&weights = loaded.weights]() -> train::StopSources {
    return {train::generation_config_of(weights), checkpoint::config_json_of(weights), weights.string()};
  };
  sampling.stops =
      train::stop_ids_of_rank_0(sources, *tokenizer, loaded.sharded.model->config().vocab_size, world.comm);
  if (const auto end = tokenizer->encode(prompt.end); end.size() == 1) sampling.stops.push_back(end.front());
  models::LanguageModel& model = models::language_model(*loaded.sharded.model);
  const auto show = [&](const std::string& text) {
    if (world.is_main()) print_now(text);
  };
  if (model.continues_prompt() && !asked.chat) show(prompt.text);
  tokenizer::TextStream stream(*tokenizer);
  static_cast<void>(train::generate(model, train::prompt_ids(model, *tokenizer, prompt.text), sampling, world.comm,
                                    [&](int32_t id) { show(stream.add(id)); }));
  show(stream.finish() + "\n");
}

}  // namespace

int run_generate(const Arguments& arguments, const Launched* launched) {
  CLI::App app("Continues a text with a trained model.", "trainyard generate");
  train::ModelSource source;
  std::string prompt, tokenizer;
  train::Sampling sampling;
  bool is_chat = false;
  PromptOptions chat;
  add_model_source(app, source);
  app.add_option("--prompt", prompt, "the text to continue")->required();
  app.add_option("--tokenizer", tokenizer, "file or folder, or `bytes`; default: the model's own");
  auto special = tokenizer::SpecialTokensAre::Parsed;
  add_special_tokens(app, special);
  CLI::Option* const as_chat =
      app.add_flag("--chat", is_chat, "the prompt is a user's message, and the model answers it");
  add_prompt_options(app, chat, as_chat);
  add_sampling(app, sampling);
  config::DeviceChoice device = config::DeviceChoice::Auto;
  add_device(app, device);
  if (const auto code = parse(app, arguments)) return *code;
  require_model_source("generate", source);
  refuse_name("generate: --model", source.model.string());
  refuse_name("generate: --tokenizer", tokenizer);
  if (is_chat && special == tokenizer::SpecialTokensAre::Text)
    throw InputError("generate: --chat needs --special-tokens parse: its template has special tokens");

  // A person in a pod of a job wants a text of what is there, and not to join the ranks that train.
  const SessionSettings session{.device = train::device_kind_of(device),
                                .config_text = "generate",
                                .launched = launched,
                                .is_alone_in_a_pod = true};
  return run_in_world(with_name("generate", arguments), session, [&](const train::World& world) {
    ops::set_threads(train::threads_of({}, world.local_world));
    continue_text(train::load_model(source, world),
                  {prompt, tokenizer, special, is_chat ? std::optional(chat) : std::nullopt}, sampling, world);
  });
}

}  // namespace trainyard::cli
