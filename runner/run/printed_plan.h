#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "assemble/run_spec.h"
#include "assemble/world.h"
#include "config/load.h"
#include "data/loader.h"
#include "models/config.h"
#include "plan/hardware.h"

namespace trainyard::train {

/// A run whose memory and time are planned before it takes any.
struct ToPlan {
  const config::Loaded& loaded;
  const RunSpec& spec;
  const models::ModelConfig& model;
  const data::Loader& loader;
  int64_t total_steps = 0;
  const World& world;
  size_t resident_before = 0;  ///< bytes of the process without the run
};

struct Planned {
  Hardware hardware;
  size_t bytes = 0;       ///< of tensors of a rank, at the peak of a step
  double peak_flops = 0;  ///< FLOP/s of a rank
};

/// Plans this rank's part, as which all others are taken to be, and prints the table. Warns where memory may not do.
/// Throws InputError where it cannot.
Planned print_plan(const ToPlan& run);

/// The words for `peak`, in FLOP/s, against which MFU is given.
std::string peak_text(const Hardware& hardware, double peak);

}  // namespace trainyard::train
