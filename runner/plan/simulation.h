#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "assemble/run_spec.h"
#include "config/load.h"
#include "models/config.h"
#include "plan/hardware.h"
#include "plan/timeline.h"
#include "tensor/memory.h"

namespace trainyard::train {

/// A rank's part of a micro-batch.
struct BatchShape {
  int64_t rows = 0, tokens = 0;
  int64_t source = 0;      ///< tokens of an encoder's input; 0 where there is none
  int64_t image_size = 0;  ///< height and width of an image, which counts as one token; 0 where there is none
};

/// What a run will hold and do, a rank and step.
struct Simulation {
  int64_t parameters = 0;
  int64_t frozen = 0;               ///< of those
  std::vector<std::string> groups;  ///< labels of the sharding groups, the root last
  std::string float8;               ///< of the linear layers in 8 bits; empty: there are none
  std::string adapters;             ///< and how many parameters they have beside the model's; empty: there are none
  RunSpec spec;                     ///< that was followed
  MemoryUse at_peak;  ///< when rank 0, which has the longest shards, holds most of what is not spec.on_host
  MemoryUse most;     ///< of each kind, each at its own time
  std::map<std::string, Traffic> traffic;
  double seconds = 0;         ///< of a step
  double waited_seconds = 0;  ///< in it, for collectives that nothing hid
  double computed_flops = 0;  ///< of matrix products and attention, recomputation included
  double model_flops = 0;     ///< as MFU counts them
  double peak_flops = 0;
  int64_t tokens_per_step = 0;  ///< of all ranks
  [[nodiscard]] double tokens_per_second() const { return static_cast<double>(tokens_per_step) / seconds; }
  [[nodiscard]] double mfu() const { return model_flops / seconds / peak_flops; }
  /// Bytes that must fit the device: at_peak of what is not spec.on_host.
  [[nodiscard]] uint64_t device_bytes() const;
  /// Bytes that the host must hold for a device; 0 on a CPU.
  [[nodiscard]] uint64_t host_bytes() const;
};

/// The parts of a run and the training loop itself, two steps of it, in a dry run (tensor/dry_run.h) as rank 0 of
/// `placement.world`: model, groups, collectives and allocations are those of the code that trains, and what changes
/// there changes here. Takes milliseconds and next to no memory, whatever the model.
/// Throws InputError where the mesh that is asked for does not fit the ranks.
Simulation simulate(const config::Loaded& loaded, const models::ModelConfig& model, const Placement& placement,
                   const Hardware& hardware, BatchShape batch);

/// The fewest ranks on which the mesh that is asked for is one: 1 where nothing else is.
Placement least_placement(const config::Config& config);

/// Throws InputError for what each of so many ranks would refuse whatever its data: a mesh that does not fit, sizes,
/// classes or groups that the model does not have. As cheap as simulate().
void check_ranks(const config::Loaded& loaded, const Placement& placement);

/// Throws InputError for what each of `ranks` ranks of one host would refuse once all have met: a mesh that does not
/// fit, a model, classes, groups or text files that are not there. As cheap as simulate().
void check_on_one_host(const config::Loaded& loaded, int ranks);

/// The longest batch of such data.
BatchShape batch_shape_of(const BatchSize& batch, const config::Data& data, const models::ModelConfig& model);

/// The same ranks, as mesh_of() takes them.
Ranks ranks_of(const Placement& placement);

}  // namespace trainyard::train
