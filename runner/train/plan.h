#pragma once

#include <cstdint>
#include <vector>

#include "config/config.h"
#include "data/loader.h"
#include "metrics/table.h"
#include "models/config.h"
#include "shard/engine.h"

namespace trainyard::train {

/// What a run is going to do, for people to read before the first step: what runs and where, model, memory a rank,
/// data, where things go.
std::vector<metrics::TableRow> plan_rows(const config::Config& config, const models::ModelConfig& model,
                                         const shard::Engine& engine, const data::Loader& loader, int64_t total_steps);

}  // namespace trainyard::train
