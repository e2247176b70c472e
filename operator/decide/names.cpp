#include "decide/names.h"

#include <fmt/format.h>

#include <charconv>

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

bool has_master(const api::Job& job) {
  return job.spec.replicas.contains(api::ReplicaType::Master);
}

int total_replicas(const api::Job& job) {
  int total = 0;
  for (const auto& [type, spec] : job.spec.replicas) total += spec.replicas;
  return total;
}

int processes_per_replica(const api::Job& job) {
  const std::string text = job.spec.nproc_per_node.value_or("");
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 1;
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
