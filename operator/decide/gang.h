#pragma once

#include <vector>

#include "decide/plan.h"

namespace trainyard::decide {

/// A place in the gang and what is there of it.
struct Replica {
  api::ReplicaType type;
  int index;
  const api::ReplicaSpec* spec;
  std::string name;             ///< of its pod and its service
  const api::Pod* pod;          ///< null: none of ours has the name
  const api::Service* service;  ///< likewise
};

/// The places of a job by rank, and what the job owns beyond them.
struct Gang {
  std::vector<Replica> replicas;
  std::vector<const api::Pod*> surplus_pods;
  std::vector<const api::Service*> surplus_services;
};

[[nodiscard]] Gang gang_of(const Observed& seen);

/// Of the gang's present generation; pods that another operator made carry none and are of the first.
[[nodiscard]] inline bool is_current(const api::Pod& pod, const api::JobStatus& status) {
  return pod.generation.value_or(1) == status.restarts.generation;
}

[[nodiscard]] inline bool is_running(const api::Pod& pod) {
  return pod.phase == "Running";
}
[[nodiscard]] inline bool has_failed(const api::Pod& pod) {
  return pod.phase == "Failed";
}
[[nodiscard]] inline bool has_succeeded(const api::Pod& pod) {
  return pod.phase == "Succeeded";
}
[[nodiscard]] inline bool has_ended(const api::Pod& pod) {
  return has_failed(pod) || has_succeeded(pod);
}

/// The exit code of container `pytorch`, or where that has not ended, of the first other that ended badly.
[[nodiscard]] const api::ContainerStatus* ended_container(const api::Pod& pod);

}  // namespace trainyard::decide
