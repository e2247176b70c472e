#pragma once

#include <chrono>
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

/// Whether the pod is of the gang's present generation. Pods that another operator made carry none: they are of the
/// first one.
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

/// What a pod waits for in its first seconds mostly comes by itself: a claim that is being bound, an object that is
/// applied after the job. Nothing is said of it before.
inline constexpr std::chrono::seconds kComesByItself{10};
/// When the pod was bound to its node; where that is not told, when it was made.
[[nodiscard]] TimePoint bound_since(const api::Pod& pod);

/// The end of this container decides: that of `pytorch`, or where it has not ended, of the first other that ended badly. A
/// restartable init container never decides.
[[nodiscard]] const api::ContainerStatus* ended_container(const api::Pod& pod);
/// What is reported as the cause: container `pytorch` where it failed, else of its other containers the one that failed
/// first, else an init container; never a restartable one, whose end fails no pod. Null where none failed.
[[nodiscard]] const api::ContainerStatus* failed_container(const api::Pod& pod);

}  // namespace trainyard::decide
