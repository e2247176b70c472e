#pragma once

#include <memory>

#include "assemble/run_spec.h"
#include "config/config.h"
#include "data/images.h"
#include "data/split.h"
#include "models/config.h"

namespace trainyard::train {

/// This rank's loader of data.images, read ahead by data.num_workers threads; of the test part with its labels checked
/// alike. Throws InputError where files and model do not fit each other.
std::unique_ptr<data::Loader> image_loader_of(const config::Data& data, const BatchSize& batch,
                                              const models::ModelConfig& model, const data::Place& place, data::Part part,
                                              data::Repeat repeat, const data::Split& split = {});

}  // namespace trainyard::train
