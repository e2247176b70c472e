#pragma once

#include "decide/rules/gang.h"

// The objects of a job, complete as they are sent to the API.
namespace trainyard::decide {

/// True where the job's annotation or else the operator's flag says so.
[[nodiscard]] RestartScope restart_scope_of(const api::Job& job, const Settings& settings);

/// What a pod gets beside what its job says.
struct Placement {
  int64_t generation;              ///< of the gang
  std::vector<std::string> avoid;  ///< names of nodes that it must not come to
};

/// The pod of a replica. Of the template's metadata labels, annotations and finalizers are kept.
[[nodiscard]] Json pod_object(const api::Job& job, const Replica& replica, const Settings& settings,
                              const Placement& placement);
[[nodiscard]] Json service_object(const api::Job& job, const Replica& replica);
/// Its `token` is filled in by whoever has the operator's key.
[[nodiscard]] Json token_secret_object(const api::Job& job);
/// Lets the job's own pods reach each other on all ports, and nobody else reach them.
[[nodiscard]] Json network_policy_object(const api::Job& job);

/// Settings in a pod template that give way or do not: each a Warning, once a job.
[[nodiscard]] std::vector<EventText> warnings_of(const api::Job& job, const Settings& settings);

}  // namespace trainyard::decide
