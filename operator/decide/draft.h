#pragma once

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

/// A plan while it is made, and the status that results. Rules look at it and change nothing: each returns its own part
/// of the plan, or what it found. decide.cpp alone adds that, so that the next rule sees it.
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

  /// An empty plan, for a rule that wants another status: it has the present one to begin with.
  [[nodiscard]] Plan with_status() const {
    Plan own;
    own.status = status;
    return own;
  }

  void look_again_at(const std::optional<TimePoint>& time) { plan.look_again_at(time); }
  /// Takes what a rule wants beside what is wanted already. Its status, where it has one, is the present one from now
  /// on.
  void add(Plan wanted) {
    if (wanted.status) status = *std::exchange(wanted.status, std::nullopt);
    plan.add(std::move(wanted));
  }
};

}  // namespace trainyard::decide
