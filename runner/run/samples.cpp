#include "run/samples.h"

#include <fmt/format.h>

#include "assemble/exchange.h"
#include "assemble/pairs.h"
#include "assemble/stop_ids.h"
#include "run/answers.h"
#include "run/generate.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::train {

Samples::Samples(const config::Config& config, const tokenizer::Tokenizer* tokenizer, comm::Communicator& world)
    : config_(config),
      tokenizer_(tokenizer),
      world_(world),
      pairs_(made_on_every_rank(world, [&] {
        return sample_pairs(config, world.rank() == 0 ? data::Notes::Logged : data::Notes::Unsaid);
      })) {}

void Samples::find_stop_ids(const Description& description, int64_t vocab_size) {
  if (!tokenizer_ || (config_.sample.prompt.empty() && pairs_.empty())) return;
  const auto sources = [&]() -> StopSources {
    const std::filesystem::path& from = description.weights;
    return {from.empty() ? "" : generation_config_of(from), description.config_json, from.string()};
  };
  stop_ids_ = stop_ids_of_rank_0(sources, *tokenizer_, vocab_size, world_);
}

std::string Samples::of_prompt(const std::string& title, models::Model& whole) const {
  if (config_.sample.prompt.empty() || !tokenizer_) return "";
  models::LanguageModel& model = models::language_model(whole);
  const auto prompt = prompt_ids(model, *tokenizer_, config_.sample.prompt);
  const auto made = generate(model, prompt,
                             {.max_new_tokens = config_.sample.max_new_tokens,
                              .temperature = config_.sample.temperature,
                              .top_p = config_.sample.top_p,
                              .seed = config_.training.seed,
                              .vocab_size = tokenizer_->vocab_size(),
                              .stops = stop_ids_},
                             world_);
  return fmt::format("── {} ──\n{}{}{}\n──", title, config_.sample.prompt, model.continues_prompt() ? "" : "\n→ ",
                     tokenizer::printable(tokenizer_->decode(made)));
}

std::string Samples::of_pairs(models::Model& whole) const {
  if (pairs_.empty() || !tokenizer_) return "";
  constexpr size_t kShown = 3;
  return format_answers(
      answer_pairs(models::language_model(whole), *tokenizer_, {config_.data, stop_ids_}, pairs_, world_), kShown);
}

}  // namespace trainyard::train
