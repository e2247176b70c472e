#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>

#include "api/job.h"
#include "decide/plan.h"

namespace trainyard::controller {

/// What this process remembers of a job beside what the API has. It is lost with the process, and nothing goes wrong by
/// that: at most something is tried or said once more.
struct Memory {
  std::string uid;  ///< of the job; another one of the same name begins with nothing
  bool token_is_there = false, network_policy_is_there = false;
  decide::RefusedCreates refused;
  decide::ForeignNames foreign_pods, foreign_services;
  std::set<decide::Kind> foreign_kinds;  ///< PodGroup, Autoscaler: another's has the job's name
  std::chrono::steady_clock::time_point foreign_checked{};  ///< when these were last looked for
  std::map<std::string, std::string> kubelet_warnings;      ///< of pods that do not start, by uid
  std::chrono::steady_clock::time_point warnings_checked{};
  std::optional<api::ProgressPost> post;  ///< rank 0's last
  int failures = 0;                       ///< looks in a row that could not be carried out
  std::unordered_set<size_t> said;        ///< hashes of what is said once

  /// Those of pods or of services; null for other kinds, whose names nobody else has.
  decide::ForeignNames* foreign_names(decide::Kind kind) {
    if (kind == decide::Kind::Pod) return &foreign_pods;
    return kind == decide::Kind::Service ? &foreign_services : nullptr;
  }

  /// Remembers that it is said. True the first time.
  bool remember_said(const std::string& text) {
    constexpr size_t kMaxSaid = 8192;
    if (said.size() >= kMaxSaid) said.clear();  // better twice than without bound
    return said.insert(std::hash<std::string>()(text)).second;
  }
};

}  // namespace trainyard::controller
