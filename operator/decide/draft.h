#pragma once

#include <iterator>
#include <optional>
#include <utility>

#include "decide/objects/objects.h"
#include "decide/rules/gang.h"

namespace trainyard::decide {

/// A rule found this now, and time alone may change it at `look_again`.
template <typename T>
struct Timely {
  std::optional<T> found{};
  std::optional<TimePoint> look_again{};
};

/// A plan while it is made, and the status that results. A rule either returns its own part of the plan, from what it
/// finds here, and decide.cpp adds that; or it is a verb that changes the status.
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
  void look_again_at(const std::optional<TimePoint>& time) { plan.look_again_at(time); }
  /// What a rule wants beside what is wanted already. Its status is none: the draft's is.
  void add(Plan wanted) {
    const auto append = [](auto& all, auto& more) {
      all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    };
    append(plan.events, wanted.events);
    append(plan.prepare, wanted.prepare);
    append(plan.creates, wanted.creates);
    append(plan.patches, wanted.patches);
    append(plan.deletes, wanted.deletes);
    append(plan.ask_about, wanted.ask_about);
    look_again_at(wanted.look_again);
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
