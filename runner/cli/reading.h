#pragma once

#include "config/load.h"

namespace trainyard::cli {

/// Logs how the files and flags of a run were read: as whose, and what of them changes nothing.
void log_reading(const config::Loaded& loaded);

}  // namespace trainyard::cli
