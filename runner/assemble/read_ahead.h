#pragma once

#include <functional>
#include <memory>

#include "config/config.h"
#include "data/loader.h"

namespace trainyard::train {

/// make(), read ahead by data.num_workers threads.
std::unique_ptr<data::Loader> by_workers(const config::Data& data,
                                         const std::function<std::unique_ptr<data::Loader>()>& make);

}  // namespace trainyard::train
