#include "api/pod.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::api {
namespace {

constexpr std::string_view kOurs = "trainyard.dev/";
constexpr std::string_view kOfTheJob = "training.kubeflow.org/";

void keep_prefixed(std::map<std::string, std::string>& texts, std::initializer_list<std::string_view> prefixes) {
  std::erase_if(texts, [&](const auto& text) {
    return std::none_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return text.first.starts_with(prefix); });
  });
}

/// What decisions read of the metadata of an object that a job owns.
Meta parse_lean_meta(const Json& object) {
  Meta meta = parse_meta(object);
  keep_prefixed(meta.labels, {kOfTheJob, kOurs});
  keep_prefixed(meta.annotations, {kOurs});
  return meta;
}

PodCondition parse_pod_condition(const Json& condition) {
  return {.type = text_at(condition, "/type"),
          .status = text_at(condition, "/status") == "True",
          .reason = text_at(condition, "/reason"),
          .message = text_at(condition, "/message"),
          .transitioned = parse_time(text_at(condition, "/lastTransitionTime")).value_or(TimePoint())};
}

/// Whether a decision could ask for it: what is True without a reason ("Initialized") is only the way of things.
bool says_something(const PodCondition& condition) {
  return !condition.status || !condition.reason.empty() || condition.type == "Ready" ||
         condition.type == "PodScheduled";
}

std::vector<PodCondition> parse_pod_conditions(const Json& object) {
  std::vector<PodCondition> conditions;
  if (const Json* const written = list_at(object, "/status/conditions"))
    for (const Json& condition : *written)
      if (PodCondition parsed = parse_pod_condition(condition); says_something(parsed))
        conditions.push_back(std::move(parsed));
  conditions.shrink_to_fit();
  return conditions;
}

void read_state(const Json& status, ContainerStatus& parsed) {
  constexpr std::pair<const char*, ContainerState> kStates[] = {{"/state/waiting", ContainerState::Waiting},
                                                                {"/state/running", ContainerState::Running},
                                                                {"/state/terminated", ContainerState::Terminated}};
  for (const auto& [pointer, state] : kStates) {
    const Json* const found = object_at(status, pointer);
    if (!found) continue;
    parsed.state = state;
    parsed.reason = text_at(*found, "/reason");
    parsed.message = text_at(*found, "/message");
    if (state != ContainerState::Terminated) continue;
    parsed.exit_code = static_cast<int>(int_at(*found, "/exitCode").value_or(0));
    parsed.ended = parse_time(text_at(*found, "/finishedAt"));
  }
}

void add_containers(const Json& object, const char* pointer, bool is_init, std::vector<ContainerStatus>& containers) {
  const Json* const written = list_at(object, pointer);
  if (!written) return;
  containers.reserve(containers.size() + written->size());
  for (const Json& status : *written) {
    ContainerStatus& parsed = containers.emplace_back();
    parsed.name = text_at(status, "/name");
    parsed.is_init = is_init;
    parsed.restarts = static_cast<int>(int_at(status, "/restartCount").value_or(0));
    read_state(status, parsed);
  }
}

/// An init container of restartPolicy Always, which Kubernetes calls a sidecar.
bool is_restartable(const Json& object, const std::string& init_container) {
  const Json* const written = list_at(object, "/spec/initContainers");
  return written && std::ranges::any_of(*written, [&](const Json& one) {
    return text_at(one, "/name") == init_container && text_at(one, "/restartPolicy") == "Always";
  });
}

Json object_or_empty(const Json& object, const char* pointer) {
  const Json* const found = object_at(object, pointer);
  return found ? *found : Json::object();
}

/// The value that a container sees, of several entries the last: of the first container that has it, as a webhook may
/// put containers of its own before those that we made.
std::string variable_of(const Json& object, std::string_view name) {
  const Json* const containers = list_at(object, "/spec/containers");
  if (!containers) return "";
  for (const Json& container : *containers) {
    std::string value;
    if (const Json* const variables = list_at(container, "/env"))
      for (const Json& variable : *variables)
        if (text_at(variable, "/name") == name) value = text_at(variable, "/value");
    if (!value.empty()) return value;
  }
  return "";
}

}  // namespace

Pod parse_pod(const Json& object) {
  Pod pod{parse_lean_meta(object)};
  pod.phase = text_at(object, "/status/phase");
  pod.reason = text_at(object, "/status/reason");
  pod.message = text_at(object, "/status/message");
  pod.node = text_at(object, "/spec/nodeName");
  pod.started = parse_time(text_at(object, "/status/startTime"));
  const auto usual_grace = int_at(object, "/spec/terminationGracePeriodSeconds").value_or(30);
  pod.grace_seconds = int_at(object, "/metadata/deletionGracePeriodSeconds").value_or(usual_grace);
  const Json* const finalizers = list_at(object, "/metadata/finalizers");
  pod.is_half_deleted = pod.deleted && pod.grace_seconds == 0 && (!finalizers || finalizers->empty());
  pod.restart_policy = text_at(object, "/spec/restartPolicy");
  pod.generation = parse_int(variable_of(object, kGenerationVariable));
  pod.template_digest = variable_of(object, kTemplateVariable);
  pod.nnodes = variable_of(object, "PET_NNODES");
  pod.world_size = variable_of(object, "WORLD_SIZE");
  pod.conditions = parse_pod_conditions(object);
  add_containers(object, "/status/initContainerStatuses", true, pod.containers);
  for (ContainerStatus& one : pod.containers) one.is_restartable = is_restartable(object, one.name);
  add_containers(object, "/status/containerStatuses", false, pod.containers);
  return pod;
}

Service parse_service(const Json& object) {
  return {parse_lean_meta(object)};
}

PodGroup parse_pod_group(const Json& object) {
  return {parse_meta(object), text_at(object, "/status/phase"), object_or_empty(object, "/spec")};
}

Autoscaler parse_autoscaler(const Json& object) {
  return {parse_meta(object), object_or_empty(object, "/spec")};
}

Node parse_node(const Json& object) {
  Node node{parse_meta(object)};
  node.annotations.clear();
  node.is_unschedulable = flag_at(object, "/spec/unschedulable");
  node.provider_id = text_at(object, "/spec/providerID");
  if (const Json* const taints = list_at(object, "/spec/taints"))
    for (const Json& taint : *taints)
      node.taints.push_back({text_at(taint, "/key"), text_at(taint, "/value"), text_at(taint, "/effect")});
  if (const Json* const allocatable = object_at(object, "/status/allocatable"))
    for (const auto& [resource, quantity] : allocatable->items())
      if (quantity.is_string()) node.allocatable[resource] = quantity;
  if (const Json* const conditions = list_at(object, "/status/conditions"))
    for (const Json& condition : *conditions) {
      PodCondition parsed = parse_pod_condition(condition);
      if (parsed.type == "Ready") {
        node.is_ready = parsed.status;
        node.ready_since = parsed.transitioned;
      } else if (parsed.status) {
        node.bad_conditions.push_back(std::move(parsed));
      }
    }
  return node;
}

}  // namespace trainyard::api
