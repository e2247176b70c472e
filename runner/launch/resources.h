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
  int cores = 1;  ///< cpus_here()
  int gpus = 0;
};

/// Throws InputError where TRAINYARD_CPUS is no whole number.
Resources resources_here(const rendezvous::Environment& environment);

/// The devices that CUDA_VISIBLE_DEVICES leaves of `present` ones: all where it is not set, else those before the first
/// that is no index or identifier, as CUDA counts them.
int visible_gpus(const std::optional<std::string>& visible, int present);

/// Ranks on a node: `auto` = the GPUs, else 1; `cpu` = the cores; `gpu` = the GPUs, InputError where there is none; or
/// a number. Anything else is an InputError.
int ranks_of(std::string_view processes, const Resources& resources);

}  // namespace trainyard::launch
