#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "api/parse_error.h"

// kubeflow.org/v1 PyTorchJob. Values that neither the CRD nor the webhook of the reference checks (restartPolicy,
// cleanPodPolicy, rdzvBackend, nprocPerNode) stay the text they are.
namespace trainyard::api {

inline constexpr const char* kApiVersion = "kubeflow.org/v1";
inline constexpr const char* kKind = "PyTorchJob";
inline constexpr const char* kContainerName = "pytorch";  ///< the container that ports and defaults refer to
/// The most replicas of a type: more than any cluster holds. A number that is only mistyped would have the operator
/// plan billions of pods.
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
  std::string container{};  ///< whose exit code that is; "" where none failed
};

/// What a gang's restarts must know across operators and pods that are gone (docs/operator.md, "Restarts").
struct Restarts {
  int count = 0;        ///< after failures
  int forgiven = 0;     ///< of these, up to the last one after a newer checkpoint: they spend no backoffLimit any more
  int disruptions = 0;  ///< that did not
  int64_t generation = 1;  ///< of the gang; every restart is a new one
  std::optional<RestartCause> last_cause;
  std::vector<RestartCause> causes;  ///< the last five, the newest last
  int streak = 0;  ///< failures since the last time that training got on: the exponent of the back-off
  std::optional<TimePoint> not_before;  ///< new pods wait for it (back-off)
  int64_t checkpoint_step = -1;         ///< the newest checkpoint when this generation began; -1: none known
  /// So many places, by rank, had their pods of this generation at once, one of them running: one of these that has
  /// none has lost it. Places that a job is scaled up by are not among them until they have pods.
  int formed = 0;
  /// Gang scope: the places, by rank, whose pods of this generation have succeeded. One of these that is gone is done.
  std::set<int> finished;
  std::optional<TimePoint> running_since;    ///< all pods of this generation run since then, or are done
  std::vector<std::string> avoid_nodes;      ///< whose device was at fault (exit code 140)
  std::vector<std::string> restarting_pods;  ///< replica scope: uids of pods that are counted and being deleted
};

struct Progress {
  int64_t step = 0, total_steps = 0;
  std::optional<double> loss, tokens_per_second;  ///< none where they are not known
  int64_t checkpoint_step = -1;                   ///< -1: none yet
  std::vector<int> silent_ranks;
  std::string checkpoint_error;  ///< why the latest checkpoint could not be saved; "" where it could
  std::string metrics_error;     ///< why steps are missing from metrics.jsonl; "" where none is
  std::string config_changed;    ///< files of its configuration that are not what rank 0 read; "" where all are
  std::string eta;     ///< how long the rest takes at this rate, "1h25m"; "" where that is not known
  TimePoint updated;   ///< when rank 0 said so
  TimePoint advanced;  ///< when `step` last grew: what a stalled job is told by
};

/// What rank 0 posted last, with what the endpoint knows beside it. Nothing of this but `progress` is written.
struct ProgressPost {
  Progress progress;
  std::optional<int64_t> generation;  ///< of the gang that posts; none: not said
  int world_size = 0;                 ///< ranks of the gang; 0: not said
  double seconds_a_step = 0;          ///< from the step before to this one; 0: not known
  std::string refusal;                ///< why the post that came after this one could not be taken; "": none did
};

/// A post of rank 0's as a pod's termination message has it, with the keys that the status has, too. None: it is none.
[[nodiscard]] std::optional<Progress> progress_of_text(const std::string& text);

struct JobStatus {
  std::vector<Condition> conditions;  ///< unique by type; a changed one moves to the end
  std::map<ReplicaType, ReplicaStatus> replicas;
  std::string ready;  ///< "1/3": how many of the job's pods run and are ready
  std::optional<TimePoint> start_time, completion_time, last_reconcile_time;
  Restarts restarts;
  std::optional<Progress> progress;
};

struct Job : Meta {
  JobSpec spec;
  JobStatus status;
};

/// Throws ParseError where a field of the spec has another type than the resource gives it. Of a template only that is
/// checked which pods and services are made from. Defaults are not set: set_defaults(). The status is read tolerantly,
/// as nobody could mend it: what an operator of another version wrote differently counts as absent.
[[nodiscard]] Job parse_job(const Json& object);
/// The status as the API has it; fields at their zero value are left out. `parse_job` reads it back.
[[nodiscard]] Json to_json(const JobStatus& status);
/// The status of a whole PyTorchJob, read tolerantly.
[[nodiscard]] JobStatus parse_status(const Json& object);

/// Sets what the contract says under "Defaulting", in memory.
void set_defaults(Job& job);

}  // namespace trainyard::api
