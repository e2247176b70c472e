#pragma once

#include <string>

#include "models/config.h"
#include "shard/engine.h"

namespace trainyard::train {

/// How the model lies on the ranks, group by group: each parameter's name, whole shape, placement and the local shape
/// on every rank (of a copy of the model); the dtypes, the mesh, and the collectives that a step takes. For `trainyard
/// train --inspect`.
std::string inspection(const models::ModelConfig& model, const shard::Engine& engine);

}  // namespace trainyard::train
