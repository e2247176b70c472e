#include "decide/trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "decide/conditions.h"
#include "decide/failures.h"
#include "decide/fit.h"
#include "decide/names.h"

namespace trainyard::decide {
namespace {

using namespace std::chrono_literals;

constexpr auto kCreatingLong = 10s;        // then its node is asked, and again as often
constexpr auto kCreatingTooLong = 5min;    // image pulls are recognised by themselves; this is what volumes take
constexpr auto kTerminatingTooLong = 30s;  // past deletionTimestamp, which has the grace time in it already

constexpr size_t kMostAsked = 3;  // pods a look: what keeps one from starting mostly keeps all

/// One thing that is wrong; the smaller `rank`, the sooner it is said.
struct Finding {
  int rank;
  std::string reason, message;
};

constexpr std::array kImageReasons = {"ImagePullBackOff",  "ErrImagePull",        "InvalidImageName",
                                      "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError"};
constexpr std::array kContainerReasons = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
                                          "CrashLoopBackOff"};

bool is_one_of(const auto& texts, const std::string& text) {
  return std::ranges::find(texts, text) != texts.end();
}

std::optional<Finding> finding_of_containers(const api::Pod& pod) {
  for (const api::ContainerStatus& one : pod.containers) {
    if (one.state != api::ContainerState::Waiting) continue;
    if (is_one_of(kImageReasons, one.reason))
      return Finding{3, "ImagePullFailed",
                     fmt::format("the image of container {} cannot be pulled ({}): {}; check its name, tag and the "
                                 "namespace's pull secrets",
                                 one.name, one.reason, one.message)};
    if (is_one_of(kContainerReasons, one.reason))
      return Finding{3, "ContainerNotStarting",
                     fmt::format("container {} does not start ({}): {}; see kubectl describe pod {}", one.name,
                                 one.reason, one.message, pod.name)};
  }
  return std::nullopt;
}

std::optional<Finding> finding_of_scheduling(const api::Pod& pod) {
  for (const api::PodCondition& one : pod.conditions) {
    if (one.type != "PodScheduled" || one.status || one.reason != "Unschedulable") continue;
    return Finding{4, "PodUnschedulable",
                   fmt::format("no node takes it: {}; it waits until one does: free or add nodes, or change what it "
                               "asks for",
                               one.message)};
  }
  return std::nullopt;
}

/// What keeps a volume from being mounted is in no field of the pod: its node says it in events alone.
std::optional<Finding> finding_of_creation(const api::Pod& pod, Draft& draft) {
  if (pod.node.empty() || is_running(pod)) return std::nullopt;
  const auto is_scheduled = [](const api::PodCondition& one) { return one.type == "PodScheduled" && one.status; };
  const auto scheduled = std::ranges::find_if(pod.conditions, is_scheduled);
  const TimePoint since = scheduled == pod.conditions.end() ? pod.created : scheduled->transitioned;
  if (draft.now < since + kCreatingLong) {
    draft.look_again_at(since + kCreatingLong);
    return std::nullopt;
  }
  if (draft.plan.ask_about.size() < kMostAsked) draft.plan.ask_about.push_back(pod.uid);
  draft.look_again_at(draft.now + kCreatingLong);
  const auto warning = draft.seen.kubelet_warnings.find(pod.uid);
  const bool is_known = warning != draft.seen.kubelet_warnings.end();
  if (!is_known && draft.now < since + kCreatingTooLong) return std::nullopt;
  return Finding{
      5, "ContainerCreatingStuck",
      fmt::format("bound to node {} since {}, and no container has started: {}", pod.node, format_time(since),
                  is_known ? fmt::format("{}; it starts once that is there", warning->second)
                           : fmt::format("its node does not say why; see kubectl describe pod {}: a volume, "
                                         "a secret or the network is missing",
                                         pod.name))};
}

std::optional<Finding> finding_of_end(const api::Pod& pod, Draft& draft) {
  const TimePoint due = *pod.deleted + kTerminatingTooLong;
  if (draft.now < due) {
    draft.look_again_at(due);
    return std::nullopt;
  }
  return Finding{2, "TerminatingStuck",
                 fmt::format("should have ended at {} and has not, on node {}; if that node is gone for "
                             "good delete the Node object, else look for finalizers and for its kubelet",
                             format_time(*pod.deleted), pod.node)};
}

std::optional<Finding> finding_of_node(const api::Pod& pod, Draft& draft) {
  const auto lost_at = node_lost_at(pod, draft);
  if (!lost_at) return std::nullopt;
  if (*lost_at > draft.now) draft.look_again_at(*lost_at);
  if (!draft.find_node(pod.node)) return std::nullopt;  // gone, or so new that nobody has told of it
  return Finding{1, "NodeNotReady",
                 fmt::format("its node {} is not ready; it counts as lost, and its pods are made anew elsewhere, if "
                             "that lasts {}",
                             pod.node, human_duration(draft.settings.node_lost_grace))};
}

/// A holder that is ending, as the pods of a deleted job of the same name are for a while, is nothing to tell of.
std::optional<Finding> finding_of_name(const std::string& name, Draft& draft) {
  for (const ForeignNames* const names : {&draft.seen.foreign_pods, &draft.seen.foreign_services}) {
    const auto holder = names->find(name);
    if (holder == names->end()) continue;
    const auto due = holder->second ? *holder->second + kTerminatingTooLong : draft.now;
    if (due > draft.now) {
      draft.look_again_at(due);
      continue;
    }
    return Finding{0, "NameTaken",
                   "a pod or service of that name belongs to something else, and is left alone; delete or rename it, "
                   "or give the job another name"};
  }
  return std::nullopt;
}

std::optional<Finding> finding_of(const Replica& replica, Draft& draft) {
  const auto refused = draft.seen.refused.find(replica.name);
  if (auto found = finding_of_name(replica.name, draft)) return found;
  if (refused != draft.seen.refused.end() && (!replica.pod || !replica.service))
    return Finding{0, "CannotCreate", fmt::format("the API refuses it: {}; it is tried again", refused->second)};
  if (!replica.pod || has_ended(*replica.pod)) return std::nullopt;
  const api::Pod& pod = *replica.pod;
  if (auto found = finding_of_node(pod, draft)) return found;
  if (pod.deleted) return finding_of_end(pod, draft);
  if (auto found = finding_of_containers(pod)) return found;
  if (auto found = finding_of_scheduling(pod)) return found;
  return finding_of_creation(pod, draft);
}

/// What is the job's as a whole.
std::string refused_for_all(const Draft& draft) {
  for (const std::string& name : {token_secret_name(draft.job()), network_policy_name(draft.job())})
    if (const auto refused = draft.seen.refused.find(name); refused != draft.seen.refused.end())
      return fmt::format("{}, which its pods need: the API refuses it: {}; it is tried again", name, refused->second);
  const auto refused = draft.seen.refused.find(draft.job().name);
  if (refused == draft.seen.refused.end()) return "";
  return fmt::format("its autoscaler or PodGroup: the API refuses it: {}; it is tried again", refused->second);
}

/// "pod job-worker-3 and 2 more: …"
std::string subject(const Replica& replica, int others) {
  return others == 0 ? fmt::format("pod {}", replica.name) : fmt::format("pod {} and {} more", replica.name, others);
}

}  // namespace

std::string defect_of(const api::Job& job) {
  for (const auto& [type, spec] : job.spec.replicas)
    if (spec.replicas > api::kMostReplicas)
      return fmt::format("spec.pytorchReplicaSpecs.{}.replicas is {}; {} is the most", api::name_of(type),
                         spec.replicas, api::kMostReplicas);
  if (total_replicas(job) == 0)
    return "spec.pytorchReplicaSpecs asks for no pod; give it a Master or a Worker with at least one replica";
  for (const auto& [type, spec] : job.spec.replicas) {
    if (!training_container(spec.pod_template))
      return fmt::format(
          "spec.pytorchReplicaSpecs.{}.template has no container named {}; name the training container so",
          api::name_of(type), api::kContainerName);
    const std::string last = replica_name(job, type, std::max(spec.replicas - 1, 0));
    constexpr size_t kMaxServiceName = 63;
    if (last.size() > kMaxServiceName)
      return fmt::format("the service {} would have {} characters, and {} is the most; give the job a shorter name",
                         last, last.size(), kMaxServiceName);
  }
  return "";
}

void report_trouble(Draft& draft) {
  if (const std::string refused = refused_for_all(draft); !refused.empty()) {
    set_trouble(draft.status, "CannotCreate", refused, draft.now);
    return draft.say_once(true, "CannotCreate", refused, "trouble " + refused);
  }
  std::optional<Finding> worst;
  const Replica* where = nullptr;
  int others = 0;
  for (const Replica& replica : draft.gang.replicas) {
    std::optional<Finding> found = finding_of(replica, draft);
    if (!found || (worst && found->rank > worst->rank)) continue;
    if (worst && found->reason == worst->reason) {
      ++others;
      continue;
    }
    worst = std::move(found), where = &replica, others = 0;
  }
  if (!worst || worst->rank > 2) {  // what is wrong with what is there comes first
    if (const std::string never = why_it_never_fits(draft); !never.empty()) {
      set_trouble(draft.status, "NeverFits", never, draft.now);
      return draft.say_once(true, "NeverFits", never, "trouble " + never);
    }
  }
  if (!worst) return set_trouble(draft.status, "", "", draft.now);
  const std::string message = fmt::format("{}: {}", subject(*where, others), worst->message);
  set_trouble(draft.status, worst->reason, message, draft.now);
  // Once for a pod and a cause: how long it lasts, or how many share it, changes with every look.
  draft.say_once(true, worst->reason, message,
                 fmt::format("trouble {} {}", worst->reason, where->pod ? where->pod->uid : where->name));
}

}  // namespace trainyard::decide
