#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "decide/conditions.h"
#include "decide/plan.h"

namespace trainyard::decide::test {

/// A job and what a cluster has of it, in memory: plans are carried out here as an API server would, and pods' states
/// are set as a kubelet would.
class World {
 public:
  /// `spec`: of the job, in the API's own form. Its name is "job", its namespace "ns". The cluster has one node,
  /// node-1.
  explicit World(const Json& spec, const Json& annotations = Json::object());

  Settings settings;
  TimePoint now{std::chrono::hours(24 * 365 * 50)};
  api::Job job;
  std::map<std::string, api::Pod> pods;
  std::map<std::string, api::Service> services;
  std::map<std::string, api::Node> nodes;
  std::optional<api::Progress> progress;                ///< as rank 0 posted it last,
  std::optional<int64_t> poster;                        ///< of this generation; none: of the present one
  std::string refusal;                                  ///< of a post that came after it
  TimePoint listens_since;                              ///< the operator
  RefusedCreates refused;
  ForeignNames foreign_pods;
  std::set<Kind> foreign_kinds;
  std::map<std::string, std::string> kubelet_warnings;
  bool is_token_there = false;
  std::optional<api::PodGroup> pod_group;
  std::optional<api::Autoscaler> autoscaler;
  std::vector<EventText> events;  ///< said so far, `once` ones once
  bool is_job_deleted = false;

  [[nodiscard]] Plan look() const;
  /// Carries a plan out; only its first `writes` where that is given, as if the operator died then. A pod that is
  /// deleted goes at once, unless it is bound to a node: then finish() ends it.
  void carry_out(const Plan& plan, size_t writes = 1'000'000);
  /// Looks and acts until nothing is to be done. Returns how many plans that took.
  int settle();

  /// The pod runs, on a node.
  void run(const std::string& name, const std::string& node = "node-1");
  void run_all();
  void end(const std::string& name, int exit_code, const std::string& message = "");
  /// What hangs in Terminating is gone.
  void finish(const std::string& name) { pods.erase(name); }
  void finish_all_ending();
  void add_node(const std::string& name, bool is_ready = true);

  [[nodiscard]] bool has(const char* condition_type) const { return is_true(job.status, condition_type); }
  [[nodiscard]] std::string state() const;  ///< the last condition's type: what kubectl shows
  [[nodiscard]] std::string trouble() const;
  [[nodiscard]] std::vector<std::string> said(const std::string& reason) const;

 private:
  void create(const Create& wanted);
  void remove(const Delete& wanted);
  int64_t next_uid_ = 100;
};

/// Master and `workers`, each with container pytorch; `changes` is merged in.
[[nodiscard]] Json spec_of(int workers, const Json& changes = Json::object(), const std::string& restart = "OnFailure");

/// A gang of a master and two workers, all running on node-1.
[[nodiscard]] World running_gang(const Json& changes = Json::object(), const std::string& restart = "OnFailure");

/// Of World's pods or services.
[[nodiscard]] std::vector<std::string> names_of(const auto& objects) {
  std::vector<std::string> names;
  for (const auto& [name, object] : objects) names.push_back(name);
  return names;
}

}  // namespace trainyard::decide::test
