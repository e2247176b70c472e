#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/meta.h"

// kubeflow.org/v1 PyTorchJob. Values that neither the CRD nor the webhook of the reference checks (restartPolicy,
// cleanPodPolicy, rdzvBackend, nprocPerNode) stay the text they are.
namespace trainyard::api {

inline constexpr const char* kApiVersion = "kubeflow.org/v1";
inline constexpr const char* kKind = "PyTorchJob";
inline constexpr const char* kContainerName = "pytorch";  ///< the container that ports and defaults refer to
/// Of a type: more than any cluster holds. A number that is only mistyped would have the operator plan billions of
/// pods.
inline constexpr int kMostReplicas = 100'000;
inline constexpr const char* kPortName = "pytorchjob-port";
inline constexpr int kDefaultPort = 23456;

enum class ReplicaType { Master, Worker };                       ///< in the order of their ranks
[[nodiscard]] const char* name_of(ReplicaType type);             ///< "Master"
[[nodiscard]] const char* lower_case_name_of(ReplicaType type);  ///< "master"

struct ReplicaSpec {
  int replicas = 1;
  std::string restart_policy;  ///< "" where not given
  Json pod_template;           ///< PodTemplateSpec, as it was written: an object, also where none was
};

struct SchedulingPolicy {
  std::optional<int> min_available;
  std::string queue, priority_class;
  Json min_resources;  ///< null where not given
  std::optional<int> schedule_timeout_seconds;
};

struct RunPolicy {
  std::string clean_pod_policy;  ///< "" where not given
  std::optional<int64_t> ttl_seconds_after_finished, active_deadline_seconds;
  std::optional<int> backoff_limit;
  std::optional<SchedulingPolicy> scheduling;
  bool suspend = false;
  std::string managed_by;
};

struct ElasticPolicy {
  std::optional<int> min_replicas, max_replicas;
  std::string rdzv_backend, rdzv_host, rdzv_id;
  std::optional<int> rdzv_port;
  std::vector<std::pair<std::string, std::string>> rdzv_conf;
  bool standalone = false;
  std::optional<int> nproc_per_node, max_restarts;
  Json metrics;  ///< autoscaling/v2 MetricSpecs; null where not given
};

struct JobSpec {
  std::map<ReplicaType, ReplicaSpec> replicas;
  RunPolicy run_policy;
  std::optional<ElasticPolicy> elastic;
  std::optional<std::string> nproc_per_node;
};

struct Condition {
  std::string type;
  bool status = false;
  std::string reason, message;
  TimePoint updated, transitioned;
};

struct ReplicaStatus {
  int active = 0, succeeded = 0, failed = 0;
  std::string selector;
};

/// Why the gang was restarted last.
struct RestartCause {
  std::string pod, node;
  std::optional<int> exit_code;
  std::string reason;   ///< "Error", "OOMKilled", "Evicted", "NodeLost", "PodDeleted", "Stalled", …
  std::string message;  ///< the last line of the termination message, where there is one
  TimePoint time;
};

/// What a gang's restarts must know across operators and pods that are gone (docs/operator.md, "Restarts").
struct Restarts {
  int count = 0;        ///< after failures
  int forgiven = 0;     ///< of these, up to the last one after a newer checkpoint: they spend no backoffLimit any more
  int disruptions = 0;  ///< that did not
  int64_t generation = 1;  ///< of the gang; every restart is a new one
  std::optional<RestartCause> last_cause;
  int streak = 0;  ///< failures since the last time that training got on: the exponent of the back-off
  std::optional<TimePoint> not_before;  ///< new pods wait for it (back-off)
  int64_t checkpoint_step = -1;         ///< the newest checkpoint when this generation began; -1: none known
  /// So many places, by rank, had their pods of this generation at once, one of them running: one of these that has
  /// none has lost it. Places that a job is scaled up by are not among them until they have pods.
  int formed = 0;
  std::vector<std::string> avoid_nodes;      ///< whose device was at fault (exit code 140)
  std::vector<std::string> restarting_pods;  ///< replica scope: uids of failed pods that are counted and being deleted
};

struct Progress {
  int64_t step = 0, total_steps = 0;
  double loss = 0, tokens_per_second = 0;
  int64_t checkpoint_step = -1;  ///< -1: none yet
  std::vector<int> silent_ranks;
  std::string eta;     ///< how long the rest takes at this rate, "1h25m"; "" where that is not known
  TimePoint updated;   ///< when rank 0 said so
  TimePoint advanced;  ///< when `step` last grew: what a stalled job is told by
};

struct JobStatus {
  std::vector<Condition> conditions;  ///< unique by type; a changed one moves to the end
  std::map<ReplicaType, ReplicaStatus> replicas;
  std::optional<TimePoint> start_time, completion_time, last_reconcile_time;
  Restarts restarts;
  std::optional<Progress> progress;
};

struct Job : Meta {
  JobSpec spec;
  JobStatus status;
};

/// What is written cannot be a PyTorchJob: `what()` names the field's path, what is there and what is allowed.
struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws ParseError where a field of the spec has another type than the resource gives it. Of a template only that is
/// checked which pods and services are made from. Defaults are not set: set_defaults(). The status is read tolerantly,
/// as nobody could mend it: what an operator of another version wrote differently counts as absent.
[[nodiscard]] Job parse_job(const Json& object);
/// As the API has it; fields at their zero value are left out. `parse_job` reads it back.
[[nodiscard]] Json to_json(const JobStatus& status);
/// Of a whole PyTorchJob, tolerantly.
[[nodiscard]] JobStatus parse_status(const Json& object);

/// Sets what the contract says under "Defaulting", in memory.
void set_defaults(Job& job);

}  // namespace trainyard::api
