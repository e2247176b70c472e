#include "api/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/crd.h"
#include "api/field.h"
#include "api/field_error.h"
#include "api/job.h"
#include "api/pod_rules.h"
#include "api/remarks.h"
#include "api/schema_check.h"

// The wording is the API server's own field errors' and the reference's webhook's, as scripts and people know it.
namespace trainyard::api {
namespace {

constexpr const char* kManagedByPath = "spec.runPolicy.managedBy";
constexpr size_t kLongestLabel = 63;

using Violations = std::vector<Violation>;

void refuse(Violations& violations, std::string path, std::string message) {
  violations.push_back({std::move(path), std::move(message)});
}

bool is_there(const Json& object, std::string_view pointer) {
  const Json* const found = find(object, pointer);
  return found && !found->is_null();
}

bool has_label_form(const std::string& name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_inner = [&](char c) { return is_letter(c) || c == '-' || (c >= '0' && c <= '9'); };
  return !name.empty() && is_letter(name.front()) && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), is_inner);
}

/// "qwen3_0_6b-FSDP2" -> "qwen3-0-6b-fsdp2": what is legal in `name`, in at most `longest` characters.
std::string legal_name_of(const std::string& name, size_t longest) {
  std::string legal;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z', is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_upper || is_plain)
      legal += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!legal.empty() && legal.back() != '-')
      legal += '-';
  }
  if (legal.empty() || (legal.front() >= '0' && legal.front() <= '9')) legal = legal.empty() ? "job" : "job-" + legal;
  legal.resize(std::min(legal.size(), longest));
  while (legal.back() == '-') legal.pop_back();
  return legal;
}

/// This advice says what to write in place of a job's name, so that the name has at most `longest` characters.
std::string advice_for(const Json& job, size_t longest) {
  constexpr size_t kDrawn = 5;  // characters that the API server adds to a generateName
  const std::string name = text_at(job, "/metadata/name"), base = text_at(job, "/metadata/generateName");
  const bool is_drawn = name.size() > kDrawn && !base.empty() && base.starts_with(name.substr(0, name.size() - kDrawn));
  if (!is_drawn) return fmt::format("{} would do", shown(legal_name_of(name, longest)));
  const std::string legal = legal_name_of(base, longest - kDrawn - 1);  // which ends in no '-'
  return fmt::format("generateName {} would do", shown(legal + "-"));
}

/// How many replicas of a type there may be at some time: elastic jobs are scaled.
int64_t most_replicas(const Json& job, const std::string& type) {
  const int64_t replicas = int_at(job, "/spec/pytorchReplicaSpecs/" + type + "/replicas").value_or(1);
  return type == "Worker" ? std::max(replicas, int_at(job, "/spec/elasticPolicy/maxReplicas").value_or(0)) : replicas;
}

/// The longest name of a service that this job needs: "llama-worker-31".
std::string longest_service_name(const Json& job, const std::string& name) {
  std::string longest;
  for (const ReplicaType type : {ReplicaType::Master, ReplicaType::Worker}) {
    if (!is_there(job, fmt::format("/spec/pytorchReplicaSpecs/{}", name_of(type)))) continue;
    const int64_t last = std::max<int64_t>(most_replicas(job, name_of(type)), 1) - 1;
    const std::string service = fmt::format("{}-{}-{}", name, lower_case_name_of(type), last);
    if (service.size() > longest.size()) longest = service;
  }
  return longest;
}

/// A name that is given later (generateName) is checked by whoever sees it then.
void check_name(const Json& job, Violations& violations) {
  const std::string name = text_at(job, "/metadata/name");
  if (name.empty() && is_there(job, "/metadata/generateName")) return;
  std::string faults;
  if (name.size() > kLongestLabel) faults = "must be no more than 63 characters";
  if (!has_label_form(name))
    faults += std::string(faults.empty() ? "" : ",") +
              "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
              "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
              "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
  if (faults.empty()) return;
  const size_t longest = kLongestLabel - longest_service_name(job, "").size();
  refuse(violations, "metadata.name",
         invalid(name, fmt::format("should match: {}; {}", faults, advice_for(job, longest))));
}

void check_service_names(const Json& job, Violations& violations) {
  const std::string name = text_at(job, "/metadata/name");
  const std::string service = longest_service_name(job, name);
  if (name.empty() || name.size() > kLongestLabel || service.size() <= kLongestLabel) return;
  const size_t longest = kLongestLabel - (service.size() - name.size());
  refuse(violations, "metadata.name",
         invalid(name, fmt::format("must be no more than {} characters, since a service's name has no more than {} and "
                                   "this job needs one called {}; {}",
                                   longest, kLongestLabel, shown(service), advice_for(job, longest))));
}

void check_managed_by(const Json& job, const Json* old_job, Violations& violations) {
  const auto manager_of = [](const Json& object) {
    const Json* const found = find(object, "/spec/runPolicy/managedBy");
    return found ? *found : Json(nullptr);
  };
  const Json manager = manager_of(job);
  if (old_job && manager != manager_of(*old_job))
    refuse(violations, kManagedByPath, invalid(manager, "field is immutable"));
  const std::vector<std::string_view> managers{"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"};
  const auto is_manager = [&](std::string_view known) { return manager == Json(known); };
  if (!manager.is_null() && std::ranges::none_of(managers, is_manager))
    refuse(violations, kManagedByPath, unsupported(manager, managers));
}

void check_queue(const Json& job, const Json& old_job, Violations& violations) {
  constexpr const char* kQueue = "/spec/runPolicy/schedulingPolicy/queue";
  if (!is_there(old_job, kQueue) || text_at(job, kQueue) == text_at(old_job, kQueue)) return;
  const Json* const queue = find(job, kQueue);
  refuse(violations, "spec.runPolicy.schedulingPolicy.queue",
         invalid(queue ? *queue : Json(), "spec.runPolicy.schedulingPolicy.queue is immutable"));
}

void check_elastic(const Json& job, Verdict& verdict) {
  if (!is_there(job, "/spec/elasticPolicy")) return;
  if (!is_there(job, "/spec/pytorchReplicaSpecs/Worker"))
    refuse(verdict.violations, "spec.pytorchReplicaSpecs[Worker]",
           "Required value: must be configured if elastic policy is used");
  if (!is_there(job, "/spec/elasticPolicy/nProcPerNode")) return;
  verdict.warnings.emplace_back("spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead");
  if (is_there(job, "/spec/nprocPerNode"))
    refuse(verdict.violations, "spec.elasticPolicy.nProcPerNode", "Forbidden: must not be used with spec.nprocPerNode");
}

void check_elastic_range(const Json& job, Violations& violations) {
  const auto least = int_at(job, "/spec/elasticPolicy/minReplicas");
  const auto most = int_at(job, "/spec/elasticPolicy/maxReplicas");
  if (least && most && *least > *most)
    refuse(violations, "spec.elasticPolicy.minReplicas",
           invalid(*least, fmt::format("must be no more than spec.elasticPolicy.maxReplicas, {}", *most)));
}

void check_replica_counts(const Json& job, Violations& violations) {
  for (const ReplicaType type : {ReplicaType::Master, ReplicaType::Worker}) {
    const auto replicas = int_at(job, fmt::format("/spec/pytorchReplicaSpecs/{}/replicas", name_of(type)));
    if (replicas && *replicas > kMostReplicas)
      refuse(violations, fmt::format("spec.pytorchReplicaSpecs[{}].replicas", name_of(type)),
             invalid(*replicas, fmt::format("must be no more than {}", kMostReplicas)));
  }
}

void check_containers(const Json& replica, const std::string& path, Violations& violations) {
  static const Json nothing = Json::array();
  const Json* const written = list_at(replica, "/template/spec/containers");
  const Json& containers = written ? *written : nothing;
  if (containers.empty()) refuse(violations, path, "Required value: must be specified");
  for (size_t i = 0; i < containers.size(); ++i)
    if (text_at(containers[i], "/image").empty())
      refuse(violations, fmt::format("{}[{}].image", path, i), "Required value: must be required");
  const auto is_ours = [](const Json& container) { return text_at(container, "/name") == kContainerName; };
  if (std::none_of(containers.begin(), containers.end(), is_ours))
    refuse(violations, path,
           fmt::format("Required value: must have at least one container with name {}", kContainerName));
}

bool asks_for_none(const Json& replica) {
  const auto replicas = int_at(replica, "/replicas");
  return replicas && *replicas < 1;
}

/// `old_replica` as it was before an update, null where it was not: a job that was scaled to 0 where no rule stopped it
/// can still be labelled, and scaled up.
void check_replica(const std::string& type, const Json& replica, const Json* old_replica, Violations& violations) {
  const std::string path = fmt::format("spec.pytorchReplicaSpecs[{}]", type);
  const bool is_master = type == name_of(ReplicaType::Master);
  if (!is_master && type != name_of(ReplicaType::Worker))
    refuse(violations, path, unsupported(type, {"Master", "Worker"}));
  check_containers(replica, path + ".template.spec.containers", violations);
  if (is_master && int_at(replica, "/replicas") != 1) refuse(violations, path + ".replicas", "Forbidden: must be 1");
  if (!is_master && asks_for_none(replica) && !(old_replica && asks_for_none(*old_replica)))
    refuse(violations, path + ".replicas", "Forbidden: must be at least 1");
}

void check_replicas(const Json& job, const Json* old_job, Violations& violations) {
  const Json* const replicas = object_at(job, "/spec/pytorchReplicaSpecs");
  if (!replicas) return refuse(violations, "spec.pytorchReplicaSpecs", "Required value: must be required");
  const Json* const old_replicas = old_job ? object_at(*old_job, "/spec/pytorchReplicaSpecs") : nullptr;
  for (const auto& [type, replica] : replicas->items()) {
    const bool was_there = old_replicas && old_replicas->contains(type);
    check_replica(type, replica, was_there ? &old_replicas->at(type) : nullptr, violations);
  }
}

/// This checks what the API server would refuse only later, in each pod or service of the job.
void check_pods(const Json& job, Violations& violations) {
  for (const ReplicaType type : {ReplicaType::Master, ReplicaType::Worker})
    if (const Json* const pod_template =
            object_at(job, fmt::format("/spec/pytorchReplicaSpecs/{}/template", name_of(type))))
      std::ranges::move(
          violations_of_pod(*pod_template, fmt::format("spec.pytorchReplicaSpecs[{}].template", name_of(type))),
          std::back_inserter(violations));
}

/// What templates have beside the fields of pods that are known. The schema passes it on, for a newer Kubernetes may know
/// more, so that a misspelt field would be created, and run without.
Verdict pod_fields_of(const Json& job) {
  static const Json& schema = *find(
      job_schema(),
      "/properties/spec/properties/pytorchReplicaSpecs/additionalProperties/properties/template");
  Verdict found;
  for (const ReplicaType type : {ReplicaType::Master, ReplicaType::Worker}) {
    const std::string pointer = fmt::format("/spec/pytorchReplicaSpecs/{}/template", name_of(type));
    const Json* const pod_template = object_at(job, pointer);
    if (!pod_template) continue;
    Verdict one = check_field_names(*pod_template, schema,
                                    fmt::format("spec.pytorchReplicaSpecs[{}].template", name_of(type)));
    std::ranges::move(one.violations, std::back_inserter(found.violations));
    std::ranges::move(one.warnings, std::back_inserter(found.warnings));
  }
  return found;
}

/// A job that was there before this rule must stay changeable.
void check_pod_fields(const Json& job, const Json* old_job, Verdict& verdict) {
  Verdict found = pod_fields_of(job);
  const Verdict before = old_job ? pod_fields_of(*old_job) : Verdict{};
  for (Violation& one : found.violations)
    if (std::ranges::count(before.violations, one) == 0) verdict.violations.push_back(std::move(one));
  std::ranges::move(found.warnings, std::back_inserter(verdict.warnings));
}

/// What the API server's schema has made sure of, if this job came from there.
void check_types(const Json& job, Violations& violations) {
  try {
    static_cast<void>(parse_job(job));
  } catch (const ParseError& error) {
    refuse(violations, "", error.what());
  }
}

/// What the reference lets pass. A job that was there before these rules must stay changeable: its finalizers have to
/// go at the end. So what was wrong already is let be.
void check_own_rules(const Json& job, const Json* old_job, Violations& violations) {
  for (const auto check : {check_service_names, check_elastic_range, check_replica_counts, check_pods}) {
    Violations before;
    if (old_job) check(*old_job, before);
    if (before.empty()) check(job, violations);
  }
}

}  // namespace

std::string Verdict::message() const {
  std::vector<std::string> texts;
  for (const auto& [path, text] : violations) {
    std::string whole = path.empty() ? text : fmt::format("{}: {}", path, text);
    if (std::find(texts.begin(), texts.end(), whole) == texts.end()) texts.push_back(std::move(whole));
  }
  return texts.size() == 1 ? texts.front() : texts.empty() ? "" : fmt::format("[{}]", fmt::join(texts, ", "));
}

Verdict validate(const Json& job, const Json* old_job) {
  Verdict verdict;
  check_name(job, verdict.violations);
  check_managed_by(job, old_job, verdict.violations);
  if (old_job) check_queue(job, *old_job, verdict.violations);
  check_elastic(job, verdict);
  check_replicas(job, old_job, verdict.violations);
  check_own_rules(job, old_job, verdict.violations);
  check_pod_fields(job, old_job, verdict);
  if (verdict.violations.empty()) check_types(job, verdict.violations);
  for (std::string& remark : remarks_on(job)) verdict.warnings.push_back(std::move(remark));
  return verdict;
}

}  // namespace trainyard::api
