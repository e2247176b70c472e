#include "decide/rules/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace trainyard::decide {
namespace {

// Exit codes of interfaces.md that tell of something else than the rank itself.
constexpr int kPeerLost = 138, kTerminated = 143;

/// The time from the end of a container to its pod's status: kubelets look once a second, and report in turn; on a busy
/// node a report has taken more than 3 s. The report of the lost rank's own end, as a rule the next, ends the wait.
constexpr auto kReportsTake = std::chrono::seconds(10);

/// Reasons that a kubelet or the control plane gives a pod that it ends itself.
constexpr std::array kDisruptions = {"Evicted",
                                     "NodeLost",
                                     "NodeShutdown",
                                     "Terminated",
                                     "Shutdown",
                                     "Preempting",
                                     "NodeAffinity",
                                     "TopologyAffinityError",
                                     "UnexpectedAdmissionError"};
constexpr std::string_view kNodeIsOutOf = "OutOf";  // and what of: OutOfcpu, OutOfnvidia.com/gpu

const api::PodCondition* disruption_target(const api::Pod& pod) {
  for (const api::PodCondition& one : pod.conditions)
    if (one.type == "DisruptionTarget" && one.status) return &one;
  return nullptr;
}

bool is_disrupted(const api::Pod& pod) {
  return disruption_target(pod) || pod.reason.starts_with(kNodeIsOutOf) ||
         std::ranges::find(kDisruptions, pod.reason) != kDisruptions.end();
}

const api::PodCondition* fault_of(const api::Node& node, const Settings& settings) {
  for (const api::PodCondition& one : node.bad_conditions)
    if (std::ranges::find(settings.node_faults, one.type) != settings.node_faults.end()) return &one;
  return nullptr;
}

api::RestartCause cause(const api::Pod& pod, std::string reason, std::string message, TimePoint now) {
  return {pod.name, pod.node, std::nullopt, std::move(reason), std::move(message), now};
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const size_t begin = text.find_last_of('\n', end);
  constexpr size_t kMaxLine = 1024;
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? -1 : begin))
      .substr(0, kMaxLine);
}

Loss lost(const Replica& replica, bool is_disruption, api::RestartCause why) {
  return {&replica, is_disruption, std::move(why)};
}

/// A pod that its node takes with it, before anybody has said so of the pod.
std::optional<Loss> loss_by_node(const Replica& replica, const Draft& draft) {
  const api::Pod& pod = *replica.pod;
  if (is_on_lost_node(pod, draft)) return lost(replica, true, cause_by_lost_node(pod, draft));
  const api::Node* const node = draft.find_node(pod.node);
  const api::PodCondition* const fault = node ? fault_of(*node, draft.settings) : nullptr;
  if (!fault) return std::nullopt;
  return lost(
      replica, true,
      cause(pod, "NodeFault", fmt::format("node {} reports {}: {}", pod.node, fault->type, fault->message), draft.now));
}

std::optional<Loss> loss_of_pod(const Replica& replica, bool had_formed, const Draft& draft) {
  const api::Pod& pod = *replica.pod;
  if (has_succeeded(pod)) return std::nullopt;
  if (has_failed(pod)) return loss_of_failed(replica, draft.now);
  if (pod.deleted && (is_running(pod) || had_formed)) {
    const api::PodCondition* const target = disruption_target(pod);
    return lost(replica, true,
                cause(pod, target ? target->reason : "PodDeleted", target ? target->message : "the pod was deleted",
                      draft.now));
  }
  return loss_by_node(replica, draft);
}

std::optional<Loss> loss_of(size_t place, const Draft& draft) {
  const Replica& replica = draft.gang.replicas[place];
  const bool had_formed = std::cmp_less(place, draft.status.restarts.formed);
  if (replica.pod && is_current(*replica.pod, draft.status)) return loss_of_pod(replica, had_formed, draft);
  if (replica.pod || !had_formed) return std::nullopt;  // of an earlier life, or not made yet
  if (draft.status.restarts.finished.contains(static_cast<int>(place))) return std::nullopt;
  return Loss{&replica, true, {replica.name, "", std::nullopt, "PodDeleted", "the pod is gone", draft.now}};
}

bool is_of_another(const std::optional<int>& exit_code) {
  return exit_code == kPeerLost || exit_code == kTerminated;
}

/// Ends are compared by their nodes' calendars; what is not known comes last. Equal: the first by rank stays.
bool ended_before(const Loss& one, const Loss& other) {
  const auto end_of = [](const Loss& loss) {
    const api::ContainerStatus* const ended = loss.replica->pod ? ended_container(*loss.replica->pod) : nullptr;
    return ended && ended->ended ? *ended->ended : TimePoint::max();
  };
  return end_of(one) < end_of(other);
}

/// Ranks end with "a peer was lost" long before the grace of the peer's node is over.
std::optional<Loss> node_behind(const Draft& draft) {
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod || has_ended(*replica.pod) || !node_lost_at(*replica.pod, draft)) continue;
    return lost(replica, true,
                cause(*replica.pod, "NodeLost", fmt::format("node {} is not ready", replica.pod->node), draft.now));
  }
  return std::nullopt;
}

}  // namespace

void note_cause(api::Restarts& restarts, const api::RestartCause& cause) {
  constexpr size_t kMostCauses = 5;
  restarts.causes.push_back(cause);
  if (restarts.causes.size() > kMostCauses) restarts.causes.erase(restarts.causes.begin());
  restarts.last_cause = cause;
}

std::optional<Loss> loss_in_gang(const Draft& draft) {
  std::optional<Loss> first, consequence;
  for (size_t place = 0; place < draft.gang.replicas.size(); ++place) {
    std::optional<Loss> loss = loss_of(place, draft);
    if (!loss) continue;
    if (loss->is_disruption) return loss;
    std::optional<Loss>& kept = is_consequence(*loss) ? consequence : first;
    if (!kept || ended_before(*loss, *kept)) kept = std::move(loss);
  }
  if (first) return first;
  if (!consequence) return std::nullopt;
  std::optional<Loss> behind = node_behind(draft);
  return behind ? behind : consequence;
}

bool is_consequence(const Loss& loss) {
  return is_of_another(loss.exit_code);
}

bool is_consequence(const api::Pod& pod) {
  const api::ContainerStatus* const ended = ended_container(pod);
  return ended && is_of_another(ended->exit_code);
}

Loss loss_of_failed(const Replica& replica, TimePoint now) {
  const api::ContainerStatus* const ended = ended_container(*replica.pod);
  return {&replica, is_disrupted(*replica.pod), cause_of_failure(*replica.pod, now),
          ended ? ended->exit_code : std::nullopt};
}

std::optional<TimePoint> cause_may_come_until(const Loss& loss, const Draft& draft) {
  const bool may_come = std::ranges::any_of(draft.gang.replicas, [&](const Replica& replica) {
    return replica.pod && is_current(*replica.pod, draft.status) && !has_ended(*replica.pod);
  });
  if (loss.is_disruption || !is_consequence(loss) || !may_come) return std::nullopt;
  const api::ContainerStatus* const ended = ended_container(*loss.replica->pod);
  if (!ended || !ended->ended || *ended->ended > draft.now)
    return std::nullopt;  // a clock that goes ahead tells nothing
  const TimePoint until = *ended->ended + kReportsTake;
  return until > draft.now ? std::optional(until) : std::nullopt;
}

api::RestartCause cause_of_failure(const api::Pod& pod, TimePoint now) {
  api::RestartCause found = cause(pod, pod.reason, last_line(pod.message), now);
  if (const api::ContainerStatus* const failed = failed_container(pod)) {
    found.container = failed->name;
    found.exit_code = failed->exit_code;
    if (found.reason.empty()) found.reason = failed->reason;
    if (!failed->message.empty()) found.message = last_line(failed->message);
  }
  if (found.reason.empty()) found.reason = "Error";
  return found;
}

bool is_retryable(const std::string& restart_policy, const std::optional<int>& exit_code) {
  if (restart_policy == "Never") return false;
  return restart_policy != "ExitCode" || !exit_code || *exit_code >= 128;
}

std::optional<TimePoint> node_lost_at(const api::Pod& pod, const Draft& draft) {
  if (pod.node.empty() || !draft.settings.watches_nodes) return std::nullopt;
  const api::Node* const node = draft.find_node(pod.node);
  // A node that is missing may only be so new that its watch has not told of it.
  if (!node) return pod.started.value_or(pod.created) + draft.settings.node_lost_grace;
  if (node->is_ready) return std::nullopt;
  return node->ready_since + draft.settings.node_lost_grace;
}

bool is_on_lost_node(const api::Pod& pod, const Draft& draft) {
  const auto lost_at = node_lost_at(pod, draft);
  return lost_at && *lost_at <= draft.now;
}

api::RestartCause cause_by_lost_node(const api::Pod& pod, const Draft& draft) {
  const bool is_gone = !draft.find_node(pod.node);
  return cause(pod, "NodeLost", fmt::format("node {} {}", pod.node, is_gone ? "is gone" : "is not ready"), draft.now);
}

std::vector<std::string> nodes_to_avoid(const Draft& draft) {
  const auto& remembered = draft.status.restarts.avoid_nodes;
  std::set<std::string> names(remembered.begin(), remembered.end());
  for (const auto& [name, node] : draft.nodes())
    if (fault_of(*node, draft.settings)) names.insert(name);
  return {names.begin(), names.end()};
}

}  // namespace trainyard::decide
