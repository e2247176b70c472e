#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/place.h"

// How many ranks a node runs.
namespace trainyard::launch {

/// What this node has for ranks.
struct Resources {
  int cores = 1;  ///< that this process may use: its affinity, and the container's CPU limit
  int gpus = 0;
};

Resources resources_here(const rendezvous::Environment& environment);

/// The CPUs that a limit of cgroup v2's cpu.max ("150000 100000") allows, rounded up; none for "max 100000" or
/// nonsense.
std::optional<int> cpus_of_limit(std::string_view cpu_max);

/// The devices that CUDA_VISIBLE_DEVICES leaves of `present` ones: all where it is not set, else those before the first
/// that is no index or identifier, as CUDA counts them.
int visible_gpus(const std::optional<std::string>& visible, int present);

/// Ranks on a node: `auto` = the GPUs, else 1; `cpu` = the cores; `gpu` = the GPUs, InputError where there is none; or
/// a number. Anything else is an InputError.
int ranks_of(std::string_view processes, const Resources& resources);

}  // namespace trainyard::launch
