#include "decide/pod_reports.h"

#include <fmt/format.h>

#include <utility>

namespace trainyard::decide {
namespace {

void report_exit_codes(Plan& plan, const api::Pod& pod) {
  for (const api::ContainerStatus& one : pod.containers) {
    if (one.name != api::kContainerName || one.is_init || one.state != api::ContainerState::Terminated) continue;
    const int code = one.exit_code.value_or(0);
    plan.say(false, "ExitedWithCode", fmt::format("Pod: {}.{} exited with code {}", pod.ns, pod.name, code),
             fmt::format("exit {} {} {}", pod.uid, one.restarts, code));
  }
}

void report_containers(Plan& plan, const api::Pod& pod, TimePoint now) {
  for (const api::ContainerStatus& one : pod.containers) {
    if (one.is_init) continue;
    const std::string key = fmt::format("container {} {} {}", pod.uid, one.name, one.restarts);
    if (one.state == api::ContainerState::Terminated && one.exit_code.value_or(0) != 0) {
      plan.say(true, one.reason,
               fmt::format("Error pod {} container {} exitCode: {} terminated message: {}", pod.name, one.name,
                           *one.exit_code, one.message),
               key);
    } else if (one.state == api::ContainerState::Waiting && !one.message.empty()) {
      if (now < bound_since(pod) + kComesByItself) {
        plan.look_again_at(bound_since(pod) + kComesByItself);
        continue;
      }
      plan.say(true, one.reason,
               fmt::format("Error pod {} container {} waiting message: {}", pod.name, one.name, one.message),
               fmt::format("{} {}", key, one.reason));
    }
  }
}

void report_conditions(Plan& plan, const api::Pod& pod, TimePoint now) {
  if (!pod.containers.empty()) return;
  for (const api::PodCondition& one : pod.conditions) {
    if (one.status || one.message.empty()) continue;
    if (now < one.transitioned + kComesByItself) {
      plan.look_again_at(one.transitioned + kComesByItself);
      continue;
    }
    plan.say(true, one.reason, fmt::format("Error pod {} condition message: {}", pod.name, one.message),
             fmt::format("condition {} {} {}", pod.uid, one.type, one.message));
  }
}

}  // namespace

Plan pod_reports(const Draft& draft) {
  Plan plan;
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod) continue;
    report_exit_codes(plan, *replica.pod);
    if (has_ended(*replica.pod) || replica.pod->deleted) continue;
    report_containers(plan, *replica.pod, draft.now);
    report_conditions(plan, *replica.pod, draft.now);
  }
  return plan;
}

}  // namespace trainyard::decide
