#pragma once

#include <string>

#include "models/config.h"
#include "shard/engine.h"

namespace trainyard::train {

/// How the model lies on this rank, group by group: each parameter's name, whole and local shape, placement and dtypes,
/// the mesh, and the collectives that a step takes. For `trainyard train --inspect`.
std::string inspection(const models::ModelConfig& model, const shard::Engine& engine, const shard::Policy& policy);

}  // namespace trainyard::train
