#include "decide/rules/trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "decide/conditions.h"
#include "decide/objects/names.h"
#include "decide/rules/coming_change.h"
#include "decide/rules/failures.h"
#include "decide/rules/fit.h"
#include "decide/rules/limits.h"
#include "decide/rules/progress.h"

namespace trainyard::decide {
namespace {

using namespace std::chrono_literals;

constexpr auto kCreatingLong = kComesByItself;  // then its node is asked, and again as often
constexpr auto kCreatingTooLong = 5min;    // image pulls are recognised by themselves; this is what volumes take
constexpr auto kTerminatingTooLong = 30s;  // past deletionTimestamp, which has the grace time in it already

constexpr int kWithWhatIsThere = 2;  // up to that rank a finding is of pods that are there, and comes first
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

/// What is found of one replica, and what may be found of it later.
struct Look {
  std::optional<Finding> finding{};
  std::optional<TimePoint> look_again{};
  bool asks_node = false;  ///< what the pod's node says of it is wanted
};
/// One question about a replica. Those about its pod are asked where it has one that has not ended.
using Question = Look (*)(const Replica& replica, const Draft& draft);

std::optional<TimePoint> earlier(const std::optional<TimePoint>& one, const std::optional<TimePoint>& other) {
  return one && other ? std::min(*one, *other) : one ? one : other;
}

/// Whether what is wrong since then may still come right by itself.
bool may_come_by_itself(TimePoint since, const Draft& draft) {
  return draft.now < since + kComesByItself;
}

Look of_containers(const Replica& replica, const Draft& draft) {
  const api::Pod& pod = *replica.pod;
  for (const api::ContainerStatus& one : pod.containers) {
    const bool lacks_image = is_one_of(kImageReasons, one.reason);
    if (one.state != api::ContainerState::Waiting) continue;
    if (!lacks_image && !is_one_of(kContainerReasons, one.reason)) continue;
    if (may_come_by_itself(bound_since(pod), draft)) return {.look_again = bound_since(pod) + kComesByItself};
    if (lacks_image)
      return {Finding{3, "ImagePullFailed",
                      fmt::format("the image of container {} cannot be pulled ({}): {}; check its name, tag and the "
                                  "namespace's pull secrets",
                                  one.name, one.reason, one.message)}};
    return {Finding{3, "ContainerNotStarting",
                    fmt::format("container {} does not start ({}): {}; see kubectl describe pod {}", one.name,
                                one.reason, one.message, pod.name)}};
  }
  return {};
}

Look of_scheduling(const Replica& replica, const Draft& draft) {
  for (const api::PodCondition& one : replica.pod->conditions) {
    if (one.type != "PodScheduled" || one.status || one.reason != "Unschedulable") continue;
    if (may_come_by_itself(one.transitioned, draft)) return {.look_again = one.transitioned + kComesByItself};
    return {Finding{4, "PodUnschedulable",
                    fmt::format("no node takes it: {}; it waits until one does: free or add nodes, or change what it "
                                "asks for",
                                one.message)}};
  }
  return {};
}

std::string why_not_created(const api::Pod& pod, const std::string& warning) {
  const std::string why = warning.empty()
                              ? fmt::format("its node does not say why; see kubectl describe pod {}: a volume, "
                                            "a secret or the network is missing",
                                            pod.name)
                              : fmt::format("{}; it starts once that is there", warning);
  return fmt::format("bound to node {} since {}, and no container has started: {}", pod.node,
                     format_time(bound_since(pod)), why);
}

/// What keeps a volume from being mounted is in no field of the pod: its node says it in events alone.
Look of_creation(const Replica& replica, const Draft& draft) {
  const api::Pod& pod = *replica.pod;
  if (pod.node.empty() || is_running(pod)) return {};
  const TimePoint since = bound_since(pod);
  if (draft.now < since + kCreatingLong) return {.look_again = since + kCreatingLong};
  Look look{.look_again = draft.now + kCreatingLong, .asks_node = true};
  const auto warning = draft.seen.kubelet_warnings.find(pod.uid);
  const bool is_known = warning != draft.seen.kubelet_warnings.end();
  if (is_known || draft.now >= since + kCreatingTooLong)
    look.finding = {5, "ContainerCreatingStuck", why_not_created(pod, is_known ? warning->second : "")};
  return look;
}

Look of_end(const Replica& replica, const Draft& draft) {
  const api::Pod& pod = *replica.pod;
  const TimePoint due = *pod.deleted + kTerminatingTooLong;
  if (draft.now < due) return {.look_again = due};
  return {Finding{2, "TerminatingStuck",
                  fmt::format("should have ended at {} and has not, on node {}; if that node is gone for "
                              "good delete the Node object, else look for finalizers and for its kubelet",
                              format_time(*pod.deleted), pod.node)}};
}

Look of_node(const Replica& replica, const Draft& draft) {
  const api::Pod& pod = *replica.pod;
  const auto lost_at = node_lost_at(pod, draft);
  if (!lost_at) return {};
  Look look;
  if (*lost_at > draft.now) look.look_again = lost_at;
  if (draft.find_node(pod.node))  // else it is gone, or so new that nobody has told of it
    look.finding = {1, "NodeNotReady",
                    fmt::format("its node {} is not ready; it counts as lost, and its pods are made anew elsewhere, if "
                                "that lasts {}",
                                pod.node, human_duration(draft.settings.node_lost_grace))};
  return look;
}

/// A holder that is ending, as the pods of a deleted job of the same name are for a while, is nothing to tell of.
Look of_name(const Replica& replica, const Draft& draft) {
  Look look;
  for (const ForeignNames* const names : {&draft.seen.foreign_pods, &draft.seen.foreign_services}) {
    const auto holder = names->find(replica.name);
    if (holder == names->end()) continue;
    const TimePoint due = holder->second ? *holder->second + kTerminatingTooLong : draft.now;
    if (due > draft.now) {
      look.look_again = earlier(look.look_again, due);
      continue;
    }
    look.finding = {0, "NameTaken",
                    "a pod or service of that name belongs to something else, and is left alone; delete or rename it, "
                    "or give the job another name"};
    return look;
  }
  return look;
}

/// Why the API refused to create the object; null where it did not.
const std::string* refused_creation(Kind kind, const std::string& name, const Draft& draft) {
  const auto found = draft.seen.refused.find({kind, name});
  return found == draft.seen.refused.end() ? nullptr : &found->second;
}

Look of_refusal(const Replica& replica, const Draft& draft) {
  for (const auto& [kind, is_there, what] : {std::tuple{Kind::Pod, replica.pod != nullptr, "it"},
                                             std::tuple{Kind::Service, replica.service != nullptr, "its service"}})
    if (const std::string* const reason = refused_creation(kind, replica.name, draft); reason && !is_there)
      return {
          Finding{0, "CannotCreate", fmt::format("the API refuses {}: {}; it is tried again", what, *reason)}};
  return {};
}

/// The first finding, and what was wanted on the way to it.
Look first_of(std::initializer_list<Question> questions, const Replica& replica, const Draft& draft) {
  Look all;
  for (const Question ask : questions) {
    Look one = ask(replica, draft);
    all.look_again = earlier(all.look_again, one.look_again);
    all.asks_node = all.asks_node || one.asks_node;
    all.finding = std::move(one.finding);
    if (all.finding) return all;
  }
  return all;
}

Look look_at(const Replica& replica, const Draft& draft) {
  if (!replica.pod || has_ended(*replica.pod)) return first_of({of_name, of_refusal}, replica, draft);
  if (replica.pod->deleted) return first_of({of_name, of_refusal, of_node, of_end}, replica, draft);
  return first_of({of_name, of_refusal, of_node, of_containers, of_scheduling, of_creation}, replica, draft);
}

/// Something else has the name of the PodGroup or autoscaler that this plan would make.
std::string taken_for_all(const Draft& draft) {
  for (const std::vector<Create>* const creates : {&draft.plan.prepare, &draft.plan.creates})
    for (const Create& wanted : *creates)
      if (draft.seen.foreign_kinds.contains(wanted.kind))
        return fmt::format("the {} {} belongs to something else, and is left alone; delete or rename it, or give the "
                           "job another name",
                           text_at(wanted.object, "/kind"), wanted.name);
  return "";
}

/// What the API refuses of what is the job's as a whole.
std::string refused_for_all(const Draft& draft) {
  for (const auto& [kind, name] : {std::pair{Kind::Secret, token_secret_name(draft.job())},
                                   std::pair{Kind::NetworkPolicy, network_policy_name(draft.job())}})
    if (const std::string* const reason = refused_creation(kind, name, draft))
      return fmt::format("{}, which its pods need: the API refuses it: {}; it is tried again", name, *reason);
  for (const auto& [kind, what] : {std::pair{Kind::Autoscaler, "autoscaler"}, std::pair{Kind::PodGroup, "PodGroup"}})
    if (const std::string* const reason = refused_creation(kind, draft.job().name, draft))
      return fmt::format("its {}: the API refuses it: {}; it is tried again", what, *reason);
  return "";
}

/// Reason and message of what is wrong with the job as a whole.
std::optional<Finding> finding_of_job(const Draft& draft) {
  if (std::string taken = taken_for_all(draft); !taken.empty()) return Finding{0, "NameTaken", std::move(taken)};
  if (std::string refused = refused_for_all(draft); !refused.empty())
    return Finding{0, "CannotCreate", std::move(refused)};
  return std::nullopt;
}

/// Once a generation and checkpoint: the message of a checkpoint that fails has its path, another for every save.
std::string progress_key(const ProgressTrouble& trouble, const Draft& draft) {
  return fmt::format("{} {} {}", trouble.reason, draft.status.restarts.generation, newest_checkpoint(draft));
}

/// The finding of the least rank among those of the replicas; of several reasons of that rank, the last.
struct Worst {
  std::optional<Finding> finding{};
  const Replica* where = nullptr;
  int others = 0;  ///< of which the same is found
};

/// `wants`: gets what is wanted of the looks at all replicas.
Worst worst_of(const Draft& draft, Plan& wants) {
  Worst worst;
  for (const Replica& replica : draft.gang.replicas) {
    Look look = look_at(replica, draft);
    wants.look_again_at(look.look_again);
    if (look.asks_node && wants.ask_about.size() < kMostAsked) wants.ask_about.push_back(replica.pod->uid);
    if (!look.finding || (worst.finding && look.finding->rank > worst.finding->rank)) continue;
    if (worst.finding && look.finding->reason == worst.finding->reason)
      ++worst.others;
    else
      worst = {std::move(look.finding), &replica};
  }
  return worst;
}

/// "pod job-worker-3 and 2 more: …"
std::string subject(const Replica& replica, int others) {
  return others == 0 ? fmt::format("pod {}", replica.name) : fmt::format("pod {} and {} more", replica.name, others);
}

/// Once for a pod and a cause: how long it lasts, or how many share it, changes with every look.
std::string key_of(const Worst& worst) {
  const Replica& where = *worst.where;
  return fmt::format("{} {}", worst.finding->reason, where.pod ? where.pod->uid : where.name);
}

/// `key`: the event is said once for it.
Trouble found_and_said(Trouble trouble, const Finding& found, const std::string& key) {
  trouble.reason = found.reason;
  trouble.message = found.message;
  trouble.wants.say(true, found.reason, found.message, "trouble " + key);
  return trouble;
}

}  // namespace

Trouble trouble_of(const Draft& draft) {
  Trouble trouble;
  const std::vector<ComingChange> changes = coming_changes(draft);
  for (const ComingChange& one : changes) trouble.wants.say(true, one.reason, one.message, one.once);
  if (auto found = finding_of_job(draft)) return found_and_said(std::move(trouble), *found, found->message);
  const Worst worst = worst_of(draft, trouble.wants);
  if (!worst.finding || worst.finding->rank > kWithWhatIsThere)
    if (const std::string never = why_it_never_fits(draft); !never.empty())
      return found_and_said(std::move(trouble), {0, "NeverFits", never}, never);
  if (worst.finding) {
    const std::string message = fmt::format("{}: {}", subject(*worst.where, worst.others), worst.finding->message);
    return found_and_said(std::move(trouble), {0, worst.finding->reason, message}, key_of(worst));
  }
  const Timely<ProgressTrouble> of_progress = progress_trouble(draft);
  trouble.wants.look_again_at(of_progress.look_again);
  if (const auto& found = of_progress.found)
    return found_and_said(std::move(trouble), {0, found->reason, found->message}, progress_key(*found, draft));
  if (!changes.empty()) trouble.reason = changes.front().reason, trouble.message = changes.front().message;
  return trouble;
}

}  // namespace trainyard::decide
