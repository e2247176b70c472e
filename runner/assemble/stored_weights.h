#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/name_map.h"
#include "checkpoint/open_weights.h"
#include "models/model.h"

// A model and the files of its weights: which model both together are, and what of the files no model reads.
namespace trainyard::train {

/// The tensors that the model of `config` has.
std::vector<checkpoint::Wanted> wanted_by(const models::ModelConfig& config);

/// The weights at `path` under the names of `config`'s model; `name_map` is a file that says so, or empty. Null where
/// `path` is a folder without weights.
std::unique_ptr<checkpoint::Weights> find_weights(const std::filesystem::path& path,
                                                  const std::filesystem::path& name_map,
                                                  const models::ModelConfig& config);
/// The same; throws InputError where there are none.
std::unique_ptr<checkpoint::Weights> open_weights(const std::filesystem::path& path,
                                                  const std::filesystem::path& name_map,
                                                  const models::ModelConfig& config);

/// Whether config.json alone does not say if the head is tied, so that as_stored() has to be asked.
bool depends_on_weights(const models::ModelConfig& config);

/// `config`, its head tied or not as in `weights`: as transformers 5 reads them, a stored head that differs from the
/// embedding is used whatever config.json says. Reads both where both are stored.
models::ModelConfig as_stored(models::ModelConfig config, const checkpoint::Weights& weights);

/// The text of a config.json with as_stored() applied; unchanged where it describes no model that is known here.
std::string as_stored(const std::string& config_json, const checkpoint::Weights& weights);

/// Compares what is stored with what the model reads. Returns the names that nothing reads, which transformers passes
/// over with a warning too; without those that it ignores in silence. Throws InputError for what the weights cannot do
/// without: scales, an adapter, a layer more than config.json says, a second embedding.
std::vector<std::string> unread_by(models::Model& model, const checkpoint::Weights& weights);

}  // namespace trainyard::train
