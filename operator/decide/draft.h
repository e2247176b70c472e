#pragma once

#include "decide/gang.h"
#include "decide/objects.h"

namespace trainyard::decide {

/// A plan while it is made: each rule adds what it wants, and the status that results.
struct Draft {
  const Observed& seen;
  const Settings& settings;
  TimePoint now;
  RestartScope scope;
  Gang gang;
  api::JobStatus status;  ///< as it will be
  Plan plan{};
  bool is_let_in = true;  ///< by its gang scheduler: pods may be made

  [[nodiscard]] const api::Job& job() const { return seen.job; }
  [[nodiscard]] const api::RunPolicy& policy() const { return seen.job.spec.run_policy; }

  [[nodiscard]] const Nodes& nodes() const {
    static const Nodes none;
    return seen.nodes ? *seen.nodes : none;
  }
  [[nodiscard]] const api::Node* find_node(const std::string& name) const {
    const auto found = nodes().find(name);
    return found == nodes().end() ? nullptr : found->second;
  }

  void say(bool is_warning, const std::string& reason, const std::string& message) {
    plan.events.push_back({is_warning, reason, message, ""});
  }
  void say_once(bool is_warning, const std::string& reason, const std::string& message, const std::string& key) {
    plan.events.push_back({is_warning, reason, message, key});
  }
  void look_again_at(TimePoint time) {
    if (!plan.look_again || time < *plan.look_again) plan.look_again = time;
  }
  /// Nothing where it is going already. A server marks a pod and then removes it: one whose client was gone in between
  /// may leave it marked, and another delete ends that (Kubernetes' pod garbage collector does it in time, too).
  void remove(const api::Pod& pod) {
    if (pod.deleted && !pod.is_half_deleted) return;
    constexpr std::chrono::seconds kLongest{2};  // from the mark to the removal
    if (const TimePoint due = pod.deleted.value_or(now) + kLongest; pod.deleted && now < due) return look_again_at(due);
    plan.deletes.push_back({Kind::Pod, pod.name, pod.uid});
  }
  void remove(const api::Service& service) {
    if (!service.deleted) plan.deletes.push_back({Kind::Service, service.name, service.uid});
  }
};

}  // namespace trainyard::decide
