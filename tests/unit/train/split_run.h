#pragma once

#include <map>
#include <string>

#include "small_run.h"

// Runs whose ranks share rows: held against one rank, and against the plan.
namespace trainyard::test {

/// The largest relative difference of any step's loss and gradient norm between `world` ranks, with `batch` rows a data
/// rank, and one rank with all rows.
struct Deviation {
  double loss = 0, norm = 0;
};
Deviation deviation_from_one_rank(const config::Config& config, const models::ModelConfig& model, int world,
                                  train::BatchShape batch);

/// Losses and gradient norms of `world` ranks, with `batch` rows a data rank, are those of one rank with all rows;
/// norms within 20 times the tolerance.
void check_like_one_rank(const config::Config& config, const models::ModelConfig& model, int world,
                         train::BatchShape batch, double tolerance = 1e-5);

/// What communicators of rank 0 count in a step is what the plan says, exactly, for each name of a collective.
void check_sent_as_planned(const config::Config& config, const models::ModelConfig& model, int world,
                           train::BatchShape batch);

/// The memory of a rank is within 5 % of the plan's. Gives what was held.
MemoryUse check_memory_as_planned(const config::Config& config, const models::ModelConfig& model, int world,
                                  train::BatchShape batch);

/// What a plan of two ranks is refused with; "none" where it is not.
std::string refusal_of(const config::Config& config, const models::ModelConfig& model, int world = 2);

}  // namespace trainyard::test
