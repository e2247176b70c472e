#pragma once

#include <map>
#include <string>

#include "api/job.h"

// What things are called: users, Kueue and the Kubeflow client rely on it.
namespace trainyard::decide {

inline constexpr const char* kOperatorName = "pytorchjob-controller";
inline constexpr const char* kJobNameLabel = "training.kubeflow.org/job-name";
inline constexpr const char* kOperatorLabel = "training.kubeflow.org/operator-name";
inline constexpr const char* kReplicaTypeLabel = "training.kubeflow.org/replica-type";
inline constexpr const char* kReplicaIndexLabel = "training.kubeflow.org/replica-index";
inline constexpr const char* kJobRoleLabel = "training.kubeflow.org/job-role";

using Labels = std::map<std::string, std::string>;

[[nodiscard]] std::string replica_name(const api::Job& job, api::ReplicaType type, int index);
[[nodiscard]] Labels replica_labels(const api::Job& job, api::ReplicaType type, int index);
/// The selector of all pods of a type, as the scale subresource shows it.
[[nodiscard]] std::string selector_of(const api::Job& job, api::ReplicaType type);
/// Bound to the job's uid, so that no other object can have it.
[[nodiscard]] std::string token_secret_name(const api::Job& job);
[[nodiscard]] std::string network_policy_name(const api::Job& job);

/// "" where it is not there.
[[nodiscard]] std::string annotation_of(const api::Job& job, const char* name);

/// The container `pytorch`, which ports and defaults refer to; null where there is none. Borrowed from the template.
[[nodiscard]] const Json* training_container(const Json& pod_template);

/// The digest of the pod template that a replica has now.
[[nodiscard]] std::string template_digest_of(const api::ReplicaSpec& spec);

/// Another controller runs the job, Kueue's MultiKueue for one: nothing of it is written here.
[[nodiscard]] bool is_managed_elsewhere(const api::Job& job);
[[nodiscard]] bool has_master(const api::Job& job);
/// Pods of all types together.
[[nodiscard]] int total_replicas(const api::Job& job);
/// Processes a pod: nprocPerNode where it is a number, else 1 (auto, cpu and gpu are found out in the pod).
[[nodiscard]] int processes_per_replica(const api::Job& job);
/// RANK of a pod: the master first, then the workers by index.
[[nodiscard]] int rank_of(const api::Job& job, api::ReplicaType type, int index);

/// Metadata of an object that the job owns.
[[nodiscard]] Json owned_metadata(const api::Job& job, const std::string& name);

}  // namespace trainyard::decide
