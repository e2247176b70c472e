#include <fmt/format.h>

#include "decide/trouble.h"

namespace trainyard::decide {
namespace {

void relay_exit_codes(Draft& draft, const api::Pod& pod) {
  for (const api::ContainerStatus& one : pod.containers) {
    if (one.name != api::kContainerName || one.is_init || one.state != api::ContainerState::Terminated) continue;
    const int code = one.exit_code.value_or(0);
    draft.say_once(false, "ExitedWithCode", fmt::format("Pod: {}.{} exited with code {}", pod.ns, pod.name, code),
                   fmt::format("exit {} {} {}", pod.uid, one.restarts, code));
  }
}

void relay_containers(Draft& draft, const api::Pod& pod) {
  for (const api::ContainerStatus& one : pod.containers) {
    if (one.is_init) continue;
    const std::string key = fmt::format("container {} {} {}", pod.uid, one.name, one.restarts);
    if (one.state == api::ContainerState::Terminated && one.exit_code.value_or(0) != 0) {
      draft.say_once(true, one.reason,
                     fmt::format("Error pod {} container {} exitCode: {} terminated message: {}", pod.name, one.name,
                                 *one.exit_code, one.message),
                     key);
    } else if (one.state == api::ContainerState::Waiting && !one.message.empty()) {
      draft.say_once(true, one.reason,
                     fmt::format("Error pod {} container {} waiting message: {}", pod.name, one.name, one.message),
                     fmt::format("{} {}", key, one.reason));
    }
  }
}

void relay_conditions(Draft& draft, const api::Pod& pod) {
  if (!pod.containers.empty()) return;
  for (const api::PodCondition& one : pod.conditions) {
    if (one.status || one.message.empty()) continue;
    draft.say_once(true, one.reason, fmt::format("Error pod {} condition message: {}", pod.name, one.message),
                   fmt::format("condition {} {} {}", pod.uid, one.type, one.message));
  }
}

}  // namespace

void relay_pod_reports(Draft& draft) {
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod) continue;
    relay_exit_codes(draft, *replica.pod);
    if (has_ended(*replica.pod) || replica.pod->deleted) continue;
    relay_containers(draft, *replica.pod);
    relay_conditions(draft, *replica.pod);
  }
}

}  // namespace trainyard::decide
