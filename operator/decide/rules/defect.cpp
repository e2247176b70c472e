#include "decide/rules/defect.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/pod_rules.h"
#include "decide/objects/names.h"

namespace trainyard::decide {

std::string defect_of(const api::Job& job) {
  for (const auto& [type, spec] : job.spec.replicas)
    if (spec.replicas > api::kMostReplicas)
      return fmt::format("spec.pytorchReplicaSpecs.{}.replicas is {}; {} is the most", api::name_of(type),
                         spec.replicas, api::kMostReplicas);
  if (total_replicas(job) == 0)
    return "spec.pytorchReplicaSpecs asks for no pod; give it a Master or a Worker with at least one replica";
  for (const auto& [type, spec] : job.spec.replicas) {
    if (!training_container(spec.pod_template))
      return fmt::format(
          "spec.pytorchReplicaSpecs.{}.template has no container named {}; name the training container so",
          api::name_of(type), api::kContainerName);
    const std::string last = replica_name(job, type, std::max(spec.replicas - 1, 0));
    constexpr size_t kMaxServiceName = 63;
    if (last.size() > kMaxServiceName)
      return fmt::format("the service {} would have {} characters, and {} is the most; give the job a shorter name",
                         last, last.size(), kMaxServiceName);
    const auto refused = api::violations_of_pod(
        spec.pod_template, fmt::format("spec.pytorchReplicaSpecs.{}.template", api::name_of(type)));
    if (!refused.empty()) return fmt::format("{}: {}", refused.front().path, refused.front().message);
  }
  return "";
}

}  // namespace trainyard::decide
