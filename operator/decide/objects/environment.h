#pragma once

#include "decide/plan.h"

namespace trainyard::decide {

/// What is appended to the environment of every container of a replica, in the order of the contract: a list of
/// {name, value} or {name, valueFrom}.
[[nodiscard]] Json environment_of(const api::Job& job, api::ReplicaType type, int index, int64_t generation,
                                  const Settings& settings);

/// The port of a replica's container `pytorch` called pytorchjob-port.
[[nodiscard]] int port_of(const api::ReplicaSpec& spec);

}  // namespace trainyard::decide
