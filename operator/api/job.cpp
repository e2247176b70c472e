#include "api/job.h"

#include <fmt/format.h>

#include "api/field.h"

namespace trainyard::api {
namespace {

void check_objects(const Field& entries) {
  for (size_t i = 0; i < entries.list().size(); ++i)
    if (!entries.list()[i].is_object()) entries[i].refuse("an object");
}

void check_texts(const Field& entries) {
  for (size_t i = 0; i < entries.list().size(); ++i)
    if (!entries.list()[i].is_string()) entries[i].refuse("a text");
}

void check_text_map(const Field& entries) {
  for (const auto& [key, value] : entries.object().items())
    if (!value.is_string()) entries[key].refuse("a text");
}

void check_containers(const Field& containers) {
  check_objects(containers);
  for (size_t i = 0; i < containers.list().size(); ++i) {
    const Field container = containers[i];
    for (const char* const text : {"name", "image"}) static_cast<void>(container[text].text());
    for (const char* const entries : {"ports", "env", "volumeMounts"}) check_objects(container[entries]);
    for (const char* const words : {"command", "args"}) check_texts(container[words]);
    const Field resources = container["resources"];
    for (const char* const part : {"requests", "limits"}) static_cast<void>(resources[part].object());
  }
}

/// Checks those parts that pods and services are made from; the rest is the API server's business.
void check_template(const Field& pod_template) {
  static_cast<void>(pod_template.object());
  const Field metadata = pod_template["metadata"];
  for (const char* const texts : {"labels", "annotations"}) check_text_map(metadata[texts]);
  const Field spec = pod_template["spec"];
  static_cast<void>(spec.object());
  for (const char* const containers : {"containers", "initContainers"}) check_containers(spec[containers]);
  for (const char* const text : {"restartPolicy", "schedulerName"}) static_cast<void>(spec[text].text());
  for (const char* const entries : {"volumes", "tolerations", "imagePullSecrets"}) check_objects(spec[entries]);
  static_cast<void>(spec["nodeSelector"].object());
}

ReplicaSpec parse_replica(const Field& replica) {
  ReplicaSpec parsed;
  parsed.replicas = replica["replicas"].whole_number().value_or(1);
  parsed.restart_policy = replica["restartPolicy"].text();
  const Field pod_template = replica["template"];
  check_template(pod_template);
  parsed.pod_template = pod_template.object();
  return parsed;
}

std::map<ReplicaType, ReplicaSpec> parse_replicas(const Field& specs) {
  std::map<ReplicaType, ReplicaSpec> replicas;
  for (const auto& [key, value] : specs.object().items()) {
    if (key == name_of(ReplicaType::Master))
      replicas[ReplicaType::Master] = parse_replica(specs[key]);
    else if (key == name_of(ReplicaType::Worker))
      replicas[ReplicaType::Worker] = parse_replica(specs[key]);
    else
      throw ParseError(
          fmt::format("{} must have no other keys than Master and Worker, but has {}", specs.path(), shown(Json(key))));
  }
  return replicas;
}

std::optional<SchedulingPolicy> parse_scheduling(const Field& policy) {
  if (!policy.is_there()) return std::nullopt;
  SchedulingPolicy parsed;
  parsed.min_available = policy["minAvailable"].whole_number();
  parsed.queue = policy["queue"].text();
  parsed.priority_class = policy["priorityClass"].text();
  parsed.min_resources = policy["minResources"].object_or_null();
  parsed.schedule_timeout_seconds = policy["scheduleTimeoutSeconds"].whole_number();
  return parsed;
}

RunPolicy parse_run_policy(const Field& policy) {
  RunPolicy parsed;
  parsed.clean_pod_policy = policy["cleanPodPolicy"].text();
  parsed.ttl_seconds_after_finished = policy["ttlSecondsAfterFinished"].long_whole_number();
  parsed.active_deadline_seconds = policy["activeDeadlineSeconds"].long_whole_number();
  parsed.backoff_limit = policy["backoffLimit"].whole_number();
  parsed.scheduling = parse_scheduling(policy["schedulingPolicy"]);
  parsed.suspend = policy["suspend"].flag();
  parsed.managed_by = policy["managedBy"].text();
  return parsed;
}

std::vector<std::pair<std::string, std::string>> parse_rdzv_conf(const Field& conf) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i < conf.list().size(); ++i) {
    const Field entry = conf[i];
    pairs.emplace_back(entry["key"].text(), entry["value"].text());
  }
  return pairs;
}

std::optional<ElasticPolicy> parse_elastic(const Field& policy) {
  if (!policy.is_there()) return std::nullopt;
  ElasticPolicy parsed;
  parsed.min_replicas = policy["minReplicas"].whole_number();
  parsed.max_replicas = policy["maxReplicas"].whole_number();
  parsed.rdzv_backend = policy["rdzvBackend"].text();
  parsed.rdzv_host = policy["rdzvHost"].text();
  parsed.rdzv_id = policy["rdzvId"].text();
  parsed.rdzv_port = policy["rdzvPort"].whole_number();
  parsed.rdzv_conf = parse_rdzv_conf(policy["rdzvConf"]);
  parsed.standalone = policy["standalone"].flag();
  parsed.nproc_per_node = policy["nProcPerNode"].whole_number();
  parsed.max_restarts = policy["maxRestarts"].whole_number();
  parsed.metrics = policy["metrics"].list_or_null();
  return parsed;
}

}  // namespace

const char* name_of(ReplicaType type) {
  return type == ReplicaType::Master ? "Master" : "Worker";
}

const char* lower_case_name_of(ReplicaType type) {
  return type == ReplicaType::Master ? "master" : "worker";
}

Job parse_job(const Json& object) {
  const Field root(object);
  if (!object.is_object()) root.refuse("an object");
  Job job{parse_meta(object), {}, {}};
  const Field spec = root["spec"];
  job.spec.replicas = parse_replicas(spec["pytorchReplicaSpecs"]);
  job.spec.run_policy = parse_run_policy(spec["runPolicy"]);
  job.spec.elastic = parse_elastic(spec["elasticPolicy"]);
  job.spec.nproc_per_node = spec["nprocPerNode"].optional_text();
  job.status = parse_status(object);
  return job;
}

}  // namespace trainyard::api
