#include "api/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "api/annotations.h"
#include "api/field.h"
#include "api/job.h"
#include "base/text.h"

namespace trainyard::api {
namespace {

using Remarks = std::vector<std::string>;

bool is_count(const std::string& text) {
  const auto number = parse_int(text);
  return number && *number > 0;
}

void remark_on_word(const Json* value, const std::string& path, const std::vector<std::string_view>& known,
                    Remarks& remarks, bool may_be_count = false) {
  if (!value || !value->is_string() || *value == "") return;
  const auto& text = value->get_ref<const std::string&>();
  if (std::ranges::count(known, text) > 0 || (may_be_count && is_count(text))) return;
  std::string list;
  for (const std::string_view word : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", word);
  remarks.push_back(fmt::format("{}: {} is not known; {}{} are", path, shown(*value), list,
                                may_be_count ? " and whole numbers" : ""));
}

void remark_on_number(const Json& job, const std::string& name, Remarks& remarks) {
  const auto number = int_at(job, "/spec/runPolicy/" + name);
  if (number && *number < 0)
    remarks.push_back(fmt::format("spec.runPolicy.{}: {} is negative; 0 and more are meant", name, *number));
}

/// The ranks of an elastic job meet as minReplicas to maxReplicas nodes, whatever the job is scaled to.
void remark_on_elastic_size(const Json& job, Remarks& remarks) {
  const auto least = int_at(job, "/spec/elasticPolicy/minReplicas");
  const auto most = int_at(job, "/spec/elasticPolicy/maxReplicas");
  if (!find(job, "/spec/pytorchReplicaSpecs/Worker") || (!least && !most)) return;
  const int64_t replicas = int_at(job, "/spec/pytorchReplicaSpecs/Worker/replicas").value_or(1);
  const int64_t smallest = least ? *least : *most, largest = most ? *most : *least;  // as set_defaults() has it
  if (smallest <= replicas && replicas <= largest) return;
  remarks.push_back(
      fmt::format("spec.pytorchReplicaSpecs[Worker].replicas: {} is outside of spec.elasticPolicy; {} to {} are meant",
                  replicas, smallest, largest));
}

/// Names of annotations have slashes and dots in them: no pointers, no paths.
const Json* annotation(const Json& job, const char* name) {
  const Json* const all = object_at(job, "/metadata/annotations");
  const auto found = all ? all->find(name) : Json::const_iterator();
  return all && found != all->end() ? &*found : nullptr;
}

void remark_on_annotations(const Json& job, Remarks& remarks) {
  const auto remark = [&](const char* name, const std::vector<std::string_view>& known) {
    remark_on_word(annotation(job, name), fmt::format("metadata.annotations[{}]", name), known, remarks);
  };
  remark(kRestartScopeAnnotation, {"gang", "replica"});
  remark(kInitContainerAnnotation, {"true", "false"});
  remark(kNetworkPolicyAnnotation, {"true", "false"});
  if (const Json* const value = annotation(job, kProgressDeadlineAnnotation);
      value && value->is_string() && !is_count(*value))
    remarks.push_back(fmt::format("metadata.annotations[{}]: {} is no whole number of seconds above 0",
                                  kProgressDeadlineAnnotation, shown(*value)));
}

}  // namespace

std::vector<std::string> remarks_on(const Json& job) {
  Remarks remarks;
  remark_on_word(find(job, "/spec/runPolicy/cleanPodPolicy"), "spec.runPolicy.cleanPodPolicy",
                 {"None", "Running", "All"}, remarks);
  for (const char* const name : {"backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"})
    remark_on_number(job, name, remarks);
  remark_on_word(find(job, "/spec/nprocPerNode"), "spec.nprocPerNode", {"auto", "cpu", "gpu"}, remarks, true);
  remark_on_word(find(job, "/spec/elasticPolicy/rdzvBackend"), "spec.elasticPolicy.rdzvBackend",
                 {"c10d", "etcd", "etcd-v2"}, remarks);
  remark_on_elastic_size(job, remarks);
  for (const ReplicaType type : {ReplicaType::Master, ReplicaType::Worker})
    remark_on_word(find(job, fmt::format("/spec/pytorchReplicaSpecs/{}/restartPolicy", name_of(type))),
                   fmt::format("spec.pytorchReplicaSpecs[{}].restartPolicy", name_of(type)),
                   {"Always", "OnFailure", "Never", "ExitCode"}, remarks);
  remark_on_annotations(job, remarks);
  return remarks;
}

}  // namespace trainyard::api
