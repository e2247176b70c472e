#include "assemble/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include "assemble/exchange.h"
#include "assemble/stored_weights.h"
#include "base/error.h"
#include "base/files.h"
#include "checkpoint/open_weights.h"

namespace trainyard::train {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLargestConfigBytes = size_t{1} << 20;

/// Sizes that the configuration gives go before the model's own. A head as wide as hidden_size / heads stays so.
models::ModelConfig with_sizes(models::ModelConfig config, const config::Model& model) {
  struct Size {
    const char* key;
    int64_t models::ModelConfig::*member;
    int64_t given;
  };
  const Size sizes[] = {{"hidden_size", &models::ModelConfig::hidden_size, model.hidden_size},
                        {"intermediate_size", &models::ModelConfig::intermediate_size, model.intermediate_size},
                        {"layers", &models::ModelConfig::layers, model.layers},
                        {"heads", &models::ModelConfig::heads, model.heads},
                        {"kv_heads", &models::ModelConfig::kv_heads, model.kv_heads},
                        {"vocab_size", &models::ModelConfig::vocab_size, model.vocab_size}};
  const auto is_given = [](const Size& size) { return size.given > 0; };
  if (std::ranges::none_of(sizes, is_given)) return config;
  const bool has_plain_heads = config.heads > 0 && config.head_dim * config.heads == config.hidden_size;
  for (const Size& size : sizes)
    if (is_given(size)) config.*size.member = size.given;
  if (has_plain_heads) config.head_dim = config.hidden_size / config.heads;
  // Read back, so that sizes that do not fit each other are refused as they are in a file.
  models::ModelConfig made =
      models::parse_config(models::to_hugging_face(config), "the model with the sizes of the configuration");
  for (const Size& size : sizes)
    if (is_given(size) && made.*size.member != size.given)
      throw InputError(fmt::format("model.{} is {}, but a {} model has no such size to choose; leave it out", size.key,
                                   size.given, made.family));
  made.untrainable = config.untrainable;
  return made;
}

/// What the configuration and a config.json say, whatever the weights are.
models::ModelConfig written_config_of(const config::Model& model) {
  if (!model.preset.empty()) return with_sizes(models::preset(model.preset), model);
  const std::string given = given_config_json(model);
  if (model.init_from.empty()) return with_sizes(models::parse_config(given, model.config), model);
  return models::parse_config(given, checkpoint::config_path_of(model.init_from));
}

models::ModelConfig with_stored_head(const models::ModelConfig& written, const config::Model& model) {
  const auto weights = find_weights(model.init_from, model.name_map, written);
  return weights ? as_stored(written, *weights) : written;
}

bool depends_on_weights(const config::Model& model, const models::ModelConfig& written) {
  return !model.init_from.empty() && train::depends_on_weights(written);
}

}  // namespace

std::string given_config_json(const config::Model& model) {
  if (!model.preset.empty()) return "";
  if (model.init_from.empty()) return read_file(model.config, kLargestConfigBytes);
  std::string recorded = checkpoint::config_json_of(model.init_from);
  return recorded.empty() ? read_file(checkpoint::config_path_of(model.init_from), kLargestConfigBytes) : recorded;
}

models::ModelConfig model_config_of(const config::Model& model) {
  const models::ModelConfig written = written_config_of(model);
  return depends_on_weights(model, written) ? with_stored_head(written, model) : written;
}

models::ModelConfig model_config_of(const config::Model& model, comm::Communicator& world) {
  models::ModelConfig config = made_on_every_rank(world, [&] { return written_config_of(model); });
  if (!depends_on_weights(model, config)) return config;
  bool is_tied = false;
  on_rank_0(world, [&] { is_tied = with_stored_head(config, model).tied_head; });
  config.tied_head = GatheredScalars(world, std::array{is_tied ? 1.0 : 0.0}, "is the head tied").at(0, 0) != 0;
  return config;
}

models::ModelConfig model_config_of(const checkpoint::Checkpoint& checkpoint) {
  const auto text = checkpoint.state().find("config_json");
  if (text == checkpoint.state().end() || !text->is_string())
    throw InputError(fmt::format("{}: the state has no config_json: not a checkpoint of a training run",
                                 checkpoint.path().string()));
  return models::parse_config(text->get<std::string>(), checkpoint.path() / "config_json");
}

}  // namespace trainyard::train
