#include "run/description.h"

#include <memory>
#include <utility>

#include "assemble/model_config.h"
#include "assemble/model_files.h"
#include "checkpoint/copied_files.h"
#include "checkpoint/files_beside.h"
#include "config/print.h"

namespace trainyard::train {
namespace {

std::shared_ptr<const checkpoint::FilesBeside> read_files_beside(const std::filesystem::path& weights,
                                                                 const Described& run) {
  const config::Config& config = run.loaded.config;
  if (!config.checkpoint.enabled || run.world.local_rank != 0) return nullptr;
  return std::make_shared<checkpoint::FilesBeside>(checkpoint::read_files(model_files_of(weights, config.data)));
}

}  // namespace

Description description_of(const Described& run) {
  const config::Config& config = run.loaded.config;
  const std::string& weights = config.model.init_from;
  if (run.world.is_main() && !weights.empty() && config.checkpoint.enabled) checkpoint::warn_of_left_behind(weights);
  return {.config_json = models::to_hugging_face(run.model, given_config_json(config.model)),
          .tokenizer = config.data.tokenizer,
          .files = read_files_beside(weights, run),
          .configuration = config::print_config(run.loaded),
          .weights = weights};
}

Description going_on_from(const checkpoint::Checkpoint& checkpoint, Description description, const Described& run) {
  const config::Model& model = run.loaded.config.model;
  if (!model.init_from.empty()) return description;
  if (!model.preset.empty())
    description.config_json =
        models::to_hugging_face(run.model, checkpoint.state().at("config_json").get<std::string>());
  description.files = read_files_beside(checkpoint.path(), run);
  description.weights = checkpoint.path();
  return description;
}

}  // namespace trainyard::train
