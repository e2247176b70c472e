#pragma once

#include <string>

#include "checkpoint/reader.h"
#include "comm/communicator.h"
#include "config/config.h"
#include "models/config.h"

// The keys of [model] become the shape of a model here.
namespace trainyard::train {

/// The model that model.preset, model.config or model.init_from names. Of init_from it is the one that config.json and
/// the weights make (assemble/stored_weights.h), where the weights are on this host.
models::ModelConfig model_config_of(const config::Model& model);

/// The same for ranks, of which only rank 0 need have the weights. Collective.
models::ModelConfig model_config_of(const config::Model& model, comm::Communicator& world);

/// The text of the config.json that model.config or model.init_from gives, as it came; "" of a preset.
std::string given_config_json(const config::Model& model);

/// The model of a checkpoint. Throws InputError where it records none.
models::ModelConfig model_config_of(const checkpoint::Checkpoint& checkpoint);

}  // namespace trainyard::train
