#include "decide/objects/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace trainyard::decide {
namespace {

/// Names are at most 253 bytes long, so a long job's name is cut; the uid keeps it apart.
std::string name_by_uid(const api::Job& job, const char* what) {
  return fmt::format("{}-{}-{}", job.name.substr(0, 200), what, job.uid.substr(0, 8));
}

}  // namespace

std::string replica_name(const api::Job& job, api::ReplicaType type, int index) {
  return fmt::format("{}-{}-{}", job.name, api::lower_case_name_of(type), index);
}

Labels replica_labels(const api::Job& job, api::ReplicaType type, int index) {
  return {{kOperatorLabel, kOperatorName},
          {kJobNameLabel, job.name},
          {kReplicaTypeLabel, api::lower_case_name_of(type)},
          {kReplicaIndexLabel, fmt::format("{}", index)}};
}

std::string selector_of(const api::Job& job, api::ReplicaType type) {
  return fmt::format("{}={},{}={},{}={}", kJobNameLabel, job.name, kOperatorLabel, kOperatorName, kReplicaTypeLabel,
                     api::lower_case_name_of(type));
}

std::string token_secret_name(const api::Job& job) {
  return name_by_uid(job, "token");
}

std::string network_policy_name(const api::Job& job) {
  return name_by_uid(job, "gang");
}

std::string annotation_of(const api::Job& job, const char* name) {
  const auto found = job.annotations.find(name);
  return found == job.annotations.end() ? "" : found->second;
}

const Json* training_container(const Json& pod_template) {
  const Json* const containers = list_at(pod_template, "/spec/containers");
  if (!containers) return nullptr;
  const auto is_it = [](const Json& one) { return text_at(one, "/name") == api::kContainerName; };
  const auto found = std::ranges::find_if(*containers, is_it);
  return found == containers->end() ? nullptr : &*found;
}

std::string template_digest_of(const api::ReplicaSpec& spec) {
  return digest_of(dump(spec.pod_template));
}

bool is_managed_elsewhere(const api::Job& job) {
  const std::string& manager = job.spec.run_policy.managed_by;
  return !manager.empty() && manager != "kubeflow.org/training-operator";
}

bool has_master(const api::Job& job) {
  return job.spec.replicas.contains(api::ReplicaType::Master);
}

int total_replicas(const api::Job& job) {
  int total = 0;
  for (const auto& [type, spec] : job.spec.replicas) total += spec.replicas;
  return total;
}

int processes_per_replica(const api::Job& job) {
  const auto number = parse_int(job.spec.nproc_per_node.value_or(""));
  return number && std::in_range<int>(*number) ? static_cast<int>(*number) : 1;
}

int rank_of(const api::Job& job, api::ReplicaType type, int index) {
  return type == api::ReplicaType::Worker && has_master(job) ? index + 1 : index;
}

Json owned_metadata(const api::Job& job, const std::string& name) {
  return {{"name", name},
          {"namespace", job.ns},
          {"ownerReferences",
           {{{"apiVersion", api::kApiVersion},
             {"kind", api::kKind},
             {"name", job.name},
             {"uid", job.uid},
             {"controller", true},
             {"blockOwnerDeletion", true}}}}};
}

}  // namespace trainyard::decide
