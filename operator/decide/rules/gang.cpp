#include "decide/rules/gang.h"

#include <algorithm>
#include <unordered_map>

#include "decide/objects/names.h"

namespace trainyard::decide {
namespace {

template <typename T>
std::unordered_map<std::string, const T*> by_name(const std::vector<const T*>& objects) {
  std::unordered_map<std::string, const T*> found;
  for (const T* object : objects) found.emplace(object->name, object);
  return found;
}

template <typename T>
const T* take(std::unordered_map<std::string, const T*>& objects, const std::string& name) {
  const auto found = objects.find(name);
  if (found == objects.end()) return nullptr;
  const T* const object = found->second;
  objects.erase(found);
  return object;
}

/// They stand in the order of their names, as equal inputs must give equal plans.
template <typename T>
std::vector<const T*> rest_of(const std::unordered_map<std::string, const T*>& objects) {
  std::vector<const T*> rest;
  for (const auto& [name, object] : objects) rest.push_back(object);
  std::ranges::sort(rest, {}, [](const T* object) { return object->name; });
  return rest;
}

}  // namespace

Gang gang_of(const Observed& seen) {
  Gang gang;
  auto pods = by_name(seen.pods);
  auto services = by_name(seen.services);
  for (const auto& [type, spec] : seen.job.spec.replicas) {
    const int replicas = std::min(spec.replicas, api::kMostReplicas);  // a job with more is not run: defect_of()
    for (int index = 0; index < replicas; ++index) {
      std::string name = replica_name(seen.job, type, index);
      const api::Pod* const pod = take(pods, name);
      const api::Service* const service = take(services, name);
      gang.replicas.push_back({type, index, &spec, std::move(name), pod, service});
    }
  }
  gang.surplus_pods = rest_of(pods);
  gang.surplus_services = rest_of(services);
  return gang;
}

TimePoint bound_since(const api::Pod& pod) {
  const auto is_bound = [](const api::PodCondition& one) { return one.type == "PodScheduled" && one.status; };
  const auto bound = std::ranges::find_if(pod.conditions, is_bound);
  return bound == pod.conditions.end() ? pod.created : bound->transitioned;
}

const api::ContainerStatus* ended_container(const api::Pod& pod) {
  const api::ContainerStatus* bad = nullptr;
  for (const api::ContainerStatus& one : pod.containers) {
    if (one.state != api::ContainerState::Terminated || one.is_restartable) continue;
    if (one.name == api::kContainerName && !one.is_init) return &one;
    if (!bad && one.exit_code.value_or(0) != 0) bad = &one;
  }
  return bad;
}

const api::ContainerStatus* failed_container(const api::Pod& pod) {
  const auto time_of = [](const api::ContainerStatus& one) { return one.ended.value_or(TimePoint::max()); };
  const api::ContainerStatus *first = nullptr, *init = nullptr;
  for (const api::ContainerStatus& one : pod.containers) {
    if (one.state != api::ContainerState::Terminated || one.exit_code.value_or(0) == 0) continue;
    if (one.is_init) {
      if (!init && !one.is_restartable) init = &one;
      continue;
    }
    if (one.name == api::kContainerName) return &one;
    if (!first || time_of(one) < time_of(*first)) first = &one;
  }
  return first ? first : init;
}

}  // namespace trainyard::decide
