#include "api/job.h"
#include "api/ports.h"

namespace trainyard::api {
namespace {

/// The port that services offer and that ranks meet at, where the container has none.
void add_port(Json& pod_template) {
  Json* const containers = find(pod_template, "/spec/containers") ? &pod_template["spec"]["containers"] : nullptr;
  if (!containers || !containers->is_array()) return;
  for (Json& container : *containers) {
    if (text_at(container, "/name") != kContainerName) continue;
    return add_meeting_port(container["ports"]);
  }
}

void set_elastic_range(JobSpec& spec) {
  ElasticPolicy& elastic = *spec.elastic;
  const auto workers = spec.replicas.find(ReplicaType::Worker);
  if (!elastic.min_replicas && !elastic.max_replicas && workers != spec.replicas.end())
    elastic.min_replicas = workers->second.replicas;
  if (!elastic.min_replicas) elastic.min_replicas = elastic.max_replicas;
  if (!elastic.max_replicas) elastic.max_replicas = elastic.min_replicas;
}

}  // namespace

void set_defaults(Job& job) {
  JobSpec& spec = job.spec;
  if (spec.run_policy.clean_pod_policy.empty()) spec.run_policy.clean_pod_policy = "None";
  for (auto& [type, replica] : spec.replicas) {
    if (replica.restart_policy.empty()) replica.restart_policy = "OnFailure";
    add_port(replica.pod_template);
  }
  if (!spec.nproc_per_node && !(spec.elastic && spec.elastic->nproc_per_node)) spec.nproc_per_node = "auto";
  if (spec.elastic) set_elastic_range(spec);
}

}  // namespace trainyard::api
