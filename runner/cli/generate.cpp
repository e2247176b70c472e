#include "cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>

#include "assemble/device.h"
#include "assemble/model_config.h"
#include "assemble/run_spec.h"
#include "assemble/stop_ids.h"
#include "assemble/threads.h"
#include "base/error.h"
#include "checkpoint/open_weights.h"
#include "cli/parse.h"
#include "comm/in_process.h"
#include "ops/threads.h"
#include "run/answers.h"
#include "run/generate.h"
#include "tokenizer/text_stream.h"
#include "train/snapshot.h"

namespace trainyard::cli {
namespace {

struct Loaded {
  train::ShardedModel sharded;
  std::string tokenizer;  ///< path
  train::StopSources stops;
};

Loaded load_model(const std::filesystem::path& folder, comm::Communicator& alone, const train::Sharding& sharding) {
  Loaded loaded{
      train::shard_model(train::model_config_of(config::Model{.init_from = folder.string()}), alone, sharding),
      folder.string(),
      {train::generation_config_of(folder), checkpoint::config_json_of(folder), folder.string()}};
  train::fill_from_weights(loaded.sharded, folder);
  return loaded;
}

Loaded load_checkpoint(const std::filesystem::path& folder, comm::Communicator& alone,
                       const train::Sharding& sharding) {
  checkpoint::Agreement agreement;
  const checkpoint::Checkpoint found = checkpoint::open_checkpoint(folder, agreement);
  Loaded loaded{train::shard_model(train::model_config_of(found), alone, sharding),
                found.state().value("tokenizer", ""),
                {train::generation_config_of(found.path()), found.state().value("config_json", ""), found.path().string()}};
  train::fill_from_checkpoint(*loaded.sharded.engine, found);
  return loaded;
}

void show(const std::string& text) {
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

}  // namespace

int run_generate(const Arguments& arguments) {
  CLI::App app("Continues a text with a trained model.", "trainyard generate");
  std::filesystem::path model, checkpoint;
  std::string prompt, tokenizer_path;
  train::Sampling sampling;
  auto* const model_option =
      app.add_option("--model", model, "Hugging Face folder: config.json, safetensors, tokenizer");
  app.add_option("--checkpoint", checkpoint, "checkpoint of a training run, or a folder of them: the latest")
      ->excludes(model_option);
  app.add_option("--prompt", prompt, "the text to continue")->required();
  app.add_option("--tokenizer", tokenizer_path, "file or folder, or `bytes`; default: the model's own");
  auto special = tokenizer::SpecialTokensAre::Parsed;
  add_special_tokens(app, special);
  add_sampling(app, sampling);
  config::Precision precision = config::Precision::Float32;
  add_param_dtype(app, precision);
  config::DeviceChoice device = config::DeviceChoice::Auto;
  add_device(app, device);
  if (const auto code = parse(app, arguments)) return *code;
  ops::set_threads(train::threads_of({}, 1));
  if (model.empty() && checkpoint.empty()) throw InputError("generate: one of --model and --checkpoint is needed");

  const auto alone = comm::make_in_process(1, config::Comm{}.timeout);
  const train::Sharding sharding{.policy = {.device = device_of_rank(train::device_kind_of(device), 0, 1),
                                            .precision = {.param_dtype = train::dtype_of(precision)}}};
  const Loaded loaded = checkpoint.empty() ? load_model(model, *alone.front(), sharding)
                                           : load_checkpoint(checkpoint, *alone.front(), sharding);
  if (tokenizer_path.empty()) tokenizer_path = loaded.tokenizer;
  if (tokenizer_path.empty())
    throw InputError("generate: the checkpoint records no tokenizer; name one with --tokenizer");
  const auto tokenizer = tokenizer::load_tokenizer(tokenizer_path, special);
  sampling.vocab_size = tokenizer->vocab_size();
  sampling.stops = train::stop_ids_of(loaded.stops, *tokenizer, loaded.sharded.model->config().vocab_size);

  models::LanguageModel& language_model = models::language_model(*loaded.sharded.model);
  if (language_model.continues_prompt()) fmt::print("{}", prompt);
  tokenizer::TextStream stream(*tokenizer);
  static_cast<void>(train::generate(language_model, train::prompt_ids(language_model, *tokenizer, prompt), sampling,
                                    *alone.front(), [&](int32_t id) { show(stream.add(id)); }));
  show(stream.finish() + "\n");
  return 0;
}

}  // namespace trainyard::cli
