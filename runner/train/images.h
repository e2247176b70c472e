#pragma once

#include <memory>

#include "config/config.h"
#include "data/images.h"
#include "models/config.h"

namespace trainyard::train {

/// This rank's loader of data.images, read ahead by data.num_workers threads; of the test part with its labels checked
/// alike. Throws InputError where files and model do not fit each other.
std::unique_ptr<data::Loader> image_loader_of(const config::Config& config, const models::ModelConfig& model,
                                              const data::Place& place, data::Part part, data::Repeat repeat);

}  // namespace trainyard::train
