#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "api/pod.h"

// What goes into a decision and what comes out of it. Nothing here does I/O.
namespace trainyard::decide {

enum class RestartScope { Gang, Replica };
enum class GangScheduler { None, Volcano, SchedulerPlugins };

/// How this operator was started, as far as decisions go.
struct Settings {
  RestartScope restart_scope = RestartScope::Gang;
  std::chrono::seconds node_lost_grace{60};
  GangScheduler gang_scheduler = GangScheduler::None;
  std::string gang_scheduler_name;  ///< as given: pods' schedulerName
  std::string init_image = "alpine:3.10";
  int init_max_tries = 100;
  std::optional<Json> init_template;  ///< --pytorch-init-container-template-file, parsed; {{.MasterAddr}} in its texts
  bool init_container = true;         ///< false: left out for all jobs
  std::string progress_url;           ///< ".../progress" of this operator; "": there is none
  std::string progress_ca;            ///< PEM; "" where the system's authorities do
  /// Pods and services that one plan makes; the rest follows when they are there. What is planned is held in memory.
  size_t most_creates = 2000;
  bool watches_nodes = true;  ///< false where it may not (--namespace)
  /// Conditions of a node that, where True, drive gangs off it (node-problem-detector's, --node-fault-conditions).
  std::vector<std::string> node_faults{"GPUProblem", "KernelDeadlock", "ReadonlyFilesystem"};
};

enum class Kind { Job, Pod, Service, Secret, NetworkPolicy, PodGroup, Autoscaler };

/// Names that something else has, and when that was asked to end; none: it stays.
using ForeignNames = std::map<std::string, std::optional<TimePoint>>;

/// Why the API refused to create an object last, by its kind and name: a pod and its service share a name.
using RefusedCreates = std::map<std::pair<Kind, std::string>, std::string>;

using Nodes = std::map<std::string, const api::Node*>;  ///< by name

/// Everything a decision about one job looks at: borrowed for the call. Pods, services and the rest are those that the
/// job controls, by its uid.
struct Observed {
  const api::Job& job;  ///< with defaults
  std::vector<const api::Pod*> pods;
  std::vector<const api::Service*> services;
  const api::PodGroup* pod_group = nullptr;
  const api::Autoscaler* autoscaler = nullptr;
  const Nodes* nodes = nullptr;  ///< all of the cluster; null where Settings::watches_nodes is false
  ForeignNames foreign_pods;     ///< names this job needs that another's pod has
  ForeignNames foreign_services;
  std::set<Kind> foreign_kinds;  ///< PodGroup, Autoscaler: what is named as the job and something else's
  RefusedCreates refused;
  std::map<std::string, std::string> kubelet_warnings;  ///< by a pod's uid: what its node said last of it
  std::optional<api::ProgressPost> post;                ///< rank 0's last, of whatever generation
  TimePoint listens_since;                              ///< since when this operator can be posted to
  bool token_is_there = false;                          ///< this operator has made sure of the job's Secret
  bool network_policy_is_there = false;                 ///< likewise
};

struct Create {
  Kind kind;
  std::string name;
  Json object;  ///< complete, owner reference included; a Secret's token is filled in by whoever has the key
};

struct Patch {
  Kind kind;
  std::string name;
  std::string resource_version;  ///< guard: nothing is written where it has changed
  Json merge;
};

struct Delete {
  Kind kind;
  std::string name;
  std::string uid;                         ///< guard
  std::optional<int64_t> grace_seconds{};  ///< 0: at once, for pods on a node that is lost
  std::string event_message{};             ///< in place of "Deleted pod: N"
};

struct EventText {
  bool is_warning = false;
  std::string reason, message;
  std::string once;  ///< not empty: said once for this job and this text, also across operators
};

/// All that is to be done for one job. In this order: the status, guarded by the job's resourceVersion (if that does
/// not hold, nothing else happens), the events, `prepare`, then `writes` all at once.
struct Plan {
  std::optional<api::JobStatus> status;  ///< none: as it is
  std::vector<EventText> events;
  std::vector<Create> prepare;
  std::vector<Create> creates;
  std::vector<Patch> patches;
  std::vector<Delete> deletes;
  std::vector<std::string> ask_about;  ///< uids of pods that do not start: what their nodes say of them is wanted
  std::optional<TimePoint> look_again;

  /// The job is looked at again at `time`, or sooner where that is wanted already; none: time changes nothing.
  void look_again_at(const std::optional<TimePoint>& time) {
    if (time && (!look_again || *time < *look_again)) look_again = time;
  }
  /// An event; `once` as in EventText.
  void say(bool is_warning, std::string reason, std::string message, std::string once = "") {
    events.push_back({is_warning, std::move(reason), std::move(message), std::move(once)});
  }
  /// Deletes the pod, unless it is going already. A server marks a pod and then removes it: one whose client was gone
  /// in between may leave it marked, and another delete ends that (Kubernetes' pod garbage collector does it in time,
  /// too).
  void remove(const api::Pod& pod, TimePoint now) {
    if (pod.deleted && !pod.is_half_deleted) return;
    constexpr std::chrono::seconds kLongest{2};  // from the mark to the removal
    if (const TimePoint due = pod.deleted.value_or(now) + kLongest; pod.deleted && now < due) return look_again_at(due);
    deletes.push_back({Kind::Pod, pod.name, pod.uid});
  }
  void remove(const api::Service& service) {
    if (!service.deleted) deletes.push_back({Kind::Service, service.name, service.uid});
  }
  /// All of `more` beside this, and its status, where it has one, in place of this one's.
  void add(Plan more) {
    const auto append = [](auto& all, auto& added) {
      all.insert(all.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
    };
    if (more.status) status = std::move(more.status);
    append(events, more.events);
    append(prepare, more.prepare);
    append(creates, more.creates);
    append(patches, more.patches);
    append(deletes, more.deletes);
    append(ask_about, more.ask_about);
    look_again_at(more.look_again);
  }
  [[nodiscard]] bool writes_nothing() const {
    return !status && prepare.empty() && creates.empty() && patches.empty() && deletes.empty();
  }
};

/// Pure: equal inputs give equal plans.
[[nodiscard]] Plan decide(const Observed& seen, const Settings& settings, TimePoint now);

}  // namespace trainyard::decide
