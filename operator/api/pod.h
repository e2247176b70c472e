#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.h"

namespace trainyard::api {

/// The variable of each container that has the generation of the gang to which its pod belongs.
inline constexpr const char* kGenerationVariable = "TRAINYARD_GENERATION";
/// Likewise, a digest of the template that its pod was made by.
inline constexpr const char* kTemplateVariable = "TRAINYARD_TEMPLATE";

enum class ContainerState { Unknown, Waiting, Running, Terminated };

struct ContainerStatus {
  std::string name;
  bool is_init = false;
  ContainerState state = ContainerState::Unknown;
  std::string reason, message;     ///< of that state
  std::optional<int> exit_code;    ///< where it is Terminated
  std::optional<TimePoint> ended;  ///< likewise, by its node's clock, in whole seconds
  int restarts = 0;
  bool is_restartable = false;  ///< an init container that lives beside the others: its end fails no pod
};

struct PodCondition {
  std::string type;
  bool status = false;
  std::string reason, message;
  TimePoint transitioned;
};

/// What decisions need of a pod: ten thousand of these stay in memory. Meta's annotations hold only those of
/// trainyard.dev.
struct Pod : Meta {
  std::string phase;            ///< Pending, Running, Succeeded, Failed, Unknown; "" counts as Pending
  std::string reason, message;  ///< of the pod itself: Evicted, NodeLost, …
  std::string node;             ///< "" where it is not bound
  std::optional<TimePoint> started;
  int64_t grace_seconds = 30;  ///< deletionGracePeriodSeconds, else terminationGracePeriodSeconds
  /// Deleted, with no grace time and no finalizer left: the server removes it next.
  bool is_half_deleted = false;
  std::string restart_policy;
  std::optional<int64_t> generation;  ///< kGenerationVariable; none: another operator made it
  std::string template_digest;        ///< kTemplateVariable; "": an operator before this one made it, or another
  std::string nnodes;                 ///< PET_NNODES: the size of the gang that it knows; of an elastic one "min:max"
  std::string world_size;             ///< WORLD_SIZE
  std::vector<PodCondition> conditions;
  std::vector<ContainerStatus> containers;  ///< init containers first
};
[[nodiscard]] Pod parse_pod(const Json& object);

struct Service : Meta {};
[[nodiscard]] Service parse_service(const Json& object);

/// Volcano's or scheduler-plugins'.
struct PodGroup : Meta {
  std::string phase;
  Json spec;
};
[[nodiscard]] PodGroup parse_pod_group(const Json& object);

struct Autoscaler : Meta {
  Json spec;
};
[[nodiscard]] Autoscaler parse_autoscaler(const Json& object);

struct Taint {
  std::string key, value, effect;
};

struct Node : Meta {
  bool is_ready = false;
  TimePoint ready_since;          ///< when `is_ready` last changed
  bool is_unschedulable = false;  ///< cordoned
  std::string provider_id;        ///< "aws:///eu-1a/i-0123": who made it; "" on bare metal
  std::vector<Taint> taints;
  std::map<std::string, std::string> allocatable;  ///< quantities, as written: "8", "63Gi"
  std::vector<PodCondition> bad_conditions;        ///< besides Ready, those that are True and mean trouble
};
[[nodiscard]] Node parse_node(const Json& object);

}  // namespace trainyard::api
