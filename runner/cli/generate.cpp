#include "cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "cli/parse.h"
#include "comm/in_process.h"
#include "ops/threads.h"
#include "train/device.h"
#include "train/generate.h"
#include "train/pairs.h"
#include "train/setup.h"
#include "train/snapshot.h"

namespace trainyard::cli {
namespace {

struct Loaded {
  train::ShardedModel sharded;
  std::string tokenizer;  ///< path
};

Loaded load_model(const std::filesystem::path& folder, comm::Communicator& alone, const train::Sharding& sharding) {
  Loaded loaded{
      train::shard_model(train::model_config_of(config::Model{.init_from = folder.string()}), alone, sharding),
      folder.string()};
  train::fill_from_weights(loaded.sharded, folder);
  return loaded;
}

Loaded load_checkpoint(const std::filesystem::path& folder, comm::Communicator& alone,
                       const train::Sharding& sharding) {
  checkpoint::Agreement agreement;
  const checkpoint::Checkpoint found = checkpoint::open_checkpoint(folder, agreement);
  Loaded loaded{train::shard_model(train::model_config_of(found), alone, sharding),
                found.state().value("tokenizer", "")};
  train::fill_from_checkpoint(*loaded.sharded.engine, found);
  return loaded;
}

/// Prints text as it comes; characters that a byte-level token leaves unfinished wait for the rest.
class TextStream {
 public:
  explicit TextStream(const tokenizer::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  void add(int32_t id) {
    ids_.push_back(id);
    const std::string text = tokenizer_.decode(ids_);
    const size_t whole = text.size() - unfinished_bytes(text);
    if (whole <= printed_) return;
    fmt::print("{}", text.substr(printed_, whole - printed_));
    std::fflush(stdout);
    printed_ = whole;
  }

 private:
  /// Bytes of a UTF-8 character at the end whose continuation is missing.
  static size_t unfinished_bytes(const std::string& text) {
    for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
      const auto byte = static_cast<unsigned char>(text[text.size() - back]);
      if ((byte & 0xC0U) == 0x80U) continue;
      const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
      return length > back ? back : 0;
    }
    return 0;
  }

  const tokenizer::Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;
  size_t printed_ = 0;
};

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
  app.add_option("--max-new-tokens", sampling.max_new_tokens, "at most so many tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--temperature", sampling.temperature, "0: always the likeliest token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "choose among the likeliest tokens of this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "equal seeds give equal texts")->capture_default_str();
  config::DeviceChoice device = config::DeviceChoice::Auto;
  add_device(app, device);
  if (const auto code = parse(app, arguments)) return *code;
  ops::set_threads(train::threads_of({}, 1));
  if (model.empty() && checkpoint.empty()) throw InputError("generate: one of --model and --checkpoint is needed");

  const auto alone = comm::make_in_process(1, config::Comm{}.timeout);
  const train::Sharding sharding{.policy = {.device = device_of_rank(train::device_kind_of(device), 0, 1)}};
  const Loaded loaded = checkpoint.empty() ? load_model(model, *alone.front(), sharding)
                                           : load_checkpoint(checkpoint, *alone.front(), sharding);
  if (tokenizer_path.empty()) tokenizer_path = loaded.tokenizer;
  if (tokenizer_path.empty())
    throw InputError("generate: the checkpoint records no tokenizer; name one with --tokenizer");
  const auto tokenizer = tokenizer::load_tokenizer(tokenizer_path);
  sampling.vocab_size = tokenizer->vocab_size();
  sampling.stop = tokenizer->eos_id();

  models::LanguageModel& language_model = models::language_model(*loaded.sharded.model);
  if (language_model.continues_prompt()) fmt::print("{}", prompt);
  TextStream stream(*tokenizer);
  static_cast<void>(train::generate(language_model, train::prompt_ids(language_model, *tokenizer, prompt), sampling,
                                    [&](int32_t id) { stream.add(id); }));
  fmt::print("\n");
  return 0;
}

}  // namespace trainyard::cli
