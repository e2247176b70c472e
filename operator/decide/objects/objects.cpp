#include "decide/objects/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "api/annotations.h"
#include "api/ports.h"
#include "decide/objects/environment.h"
#include "decide/objects/init_container.h"
#include "decide/objects/names.h"

namespace trainyard::decide {
namespace {

/// An object at `key`, made where there is none.
Json& object_in(Json& parent, const char* key) {
  Json& child = parent[key];
  if (!child.is_object()) child = Json::object();
  return child;
}

Json& array_in(Json& parent, const char* key) {
  Json& child = parent[key];
  if (!child.is_array()) child = Json::array();
  return child;
}

Json metadata_of(const api::Job& job, const Replica& replica, const Settings& settings) {
  Json metadata = owned_metadata(job, replica.name);
  const Json* const given = object_at(replica.spec->pod_template, "/metadata");
  for (const char* key : {"labels", "annotations", "finalizers"})
    if (given && given->contains(key)) metadata[key] = given->at(key);
  Json& labels = object_in(metadata, "labels");
  for (const auto& [key, value] : replica_labels(job, replica.type, replica.index)) labels[key] = value;
  const bool is_first = replica.type == api::ReplicaType::Master || (replica.index == 0 && !has_master(job));
  if (is_first) labels[kJobRoleLabel] = "master";
  if (settings.gang_scheduler == GangScheduler::Volcano) {
    Json& annotations = object_in(metadata, "annotations");
    annotations["scheduling.k8s.io/group-name"] = job.name;
    annotations["volcano.sh/task-spec"] = api::lower_case_name_of(replica.type);
  } else if (settings.gang_scheduler == GangScheduler::SchedulerPlugins) {
    labels["scheduling.x-k8s.io/pod-group"] = job.name;
  }
  return metadata;
}

/// The operator restarts under gang scope, not the kubelet: a container restarted in place would leave the others
/// waiting for the rank that is gone.
std::string pod_restart_policy(const api::Job& job, const api::ReplicaSpec& spec, const Settings& settings) {
  if (restart_scope_of(job, settings) == RestartScope::Gang || spec.restart_policy == "ExitCode") return "Never";
  return spec.restart_policy;
}

/// A program that writes no termination message, as one that ends with a traceback, is quoted from the end of its log.
void quote_logs(Json& spec) {
  for (const char* key : {"initContainers", "containers"}) {
    if (!spec.contains(key) || !spec[key].is_array()) continue;
    for (Json& container : spec[key])
      if (container.is_object() && !container.contains("terminationMessagePolicy"))
        container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  }
}

void avoid_nodes(Json& spec, const std::vector<std::string>& avoid) {
  if (avoid.empty()) return;
  Json rules = Json::array();  // one a node, all of which hold: the API takes one value for a node field
  for (const std::string& name : avoid)
    rules.push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {name}}});
  Json& required = object_in(object_in(object_in(spec, "affinity"), "nodeAffinity"),
                             "requiredDuringSchedulingIgnoredDuringExecution");
  Json& terms = array_in(required, "nodeSelectorTerms");  // any of these: the rule goes into each
  if (terms.empty()) terms.push_back(Json::object());
  for (Json& term : terms) {
    Json& fields = array_in(term, "matchFields");
    fields.insert(fields.end(), rules.begin(), rules.end());
  }
}

/// Of several ports each needs a name of its own: "port-6006", and "port-6006-udp" where that is taken.
std::string free_port_name(const Json& port, const std::set<std::string>& taken) {
  const std::string plain = fmt::format("port-{}", int_at(port, "/containerPort").value_or(0));
  if (!taken.contains(plain)) return plain;
  std::string protocol = api::protocol_of(port);
  for (char& c : protocol) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string with_protocol = fmt::format("{}-{}", plain, protocol);
  std::string name = with_protocol;
  for (int number = 2; taken.contains(name); ++number) name = fmt::format("{}-{}", with_protocol, number);
  return name;
}

/// All ports of container pytorch, as a service may have them.
Json service_ports(const Json& pod_template) {
  Json ports = Json::array();
  const Json* const container = training_container(pod_template);
  const Json* const given = container ? list_at(*container, "/ports") : nullptr;
  if (!given) return ports;
  std::set<std::string> taken;
  for (const Json& port : *given) taken.insert(text_at(port, "/name"));
  for (const Json& port : *given) {
    std::string name = text_at(port, "/name");
    if (name.empty()) taken.insert(name = free_port_name(port, taken));
    Json& added = ports.emplace_back(Json{{"name", name}, {"port", int_at(port, "/containerPort").value_or(0)}});
    if (const std::string protocol = text_at(port, "/protocol"); !protocol.empty()) added["protocol"] = protocol;
  }
  return ports;
}

std::string scheduler_name(const Json& pod_template) {
  return text_at(pod_template, "/spec/schedulerName");
}

}  // namespace

RestartScope restart_scope_of(const api::Job& job, const Settings& settings) {
  const std::string given = annotation_of(job, api::kRestartScopeAnnotation);
  if (given == "gang") return RestartScope::Gang;
  if (given == "replica") return RestartScope::Replica;
  return settings.restart_scope;
}

Json pod_object(const api::Job& job, const Replica& replica, const Settings& settings, const Placement& placement) {
  const Json* const given = object_at(replica.spec->pod_template, "/spec");
  Json spec = given ? *given : Json::object();
  const Json environment = environment_of(job, replica.type, replica.index, placement.generation, settings);
  for (Json& container : array_in(spec, "containers")) {
    Json& variables = array_in(container, "env");
    variables.insert(variables.end(), environment.begin(), environment.end());
  }
  if (wants_init_container(job, replica, settings)) {
    const Json waiting = init_containers(job, replica.spec->pod_template, settings);
    Json& all = array_in(spec, "initContainers");
    all.insert(all.end(), waiting.begin(), waiting.end());
  }
  quote_logs(spec);
  spec["restartPolicy"] = pod_restart_policy(job, *replica.spec, settings);
  if (settings.gang_scheduler != GangScheduler::None && scheduler_name(replica.spec->pod_template).empty())
    spec["schedulerName"] = settings.gang_scheduler_name;
  avoid_nodes(spec, placement.avoid);
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", metadata_of(job, replica, settings)},
          {"spec", std::move(spec)}};
}

Json service_object(const api::Job& job, const Replica& replica) {
  Json metadata = owned_metadata(job, replica.name);
  const Labels labels = replica_labels(job, replica.type, replica.index);
  metadata["labels"] = labels;
  Json ports = service_ports(replica.spec->pod_template);
  // Published before it is ready: the master's name must resolve for the workers that wait for it.
  return {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", std::move(metadata)},
      {"spec",
       {{"clusterIP", "None"}, {"publishNotReadyAddresses", true}, {"selector", labels}, {"ports", std::move(ports)}}}};
}

Json token_secret_object(const api::Job& job) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "Opaque"},
          {"metadata", owned_metadata(job, token_secret_name(job))},
          {"stringData", Json::object()}};
}

Json network_policy_object(const api::Job& job) {
  const Json own_pods = {{"matchLabels", {{kJobNameLabel, job.name}, {kOperatorLabel, kOperatorName}}}};
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", owned_metadata(job, network_policy_name(job))},
          {"spec",
           {{"podSelector", own_pods},
            {"policyTypes", {"Ingress"}},
            {"ingress", {{{"from", {{{"podSelector", own_pods}}}}}}}}}};
}

std::vector<EventText> warnings_of(const api::Job& job, const Settings& settings) {
  std::vector<EventText> warnings;
  const auto warn = [&](const char* reason, const char* message) {
    const auto is_said = [&](const EventText& one) { return one.reason == reason; };
    if (std::ranges::none_of(warnings, is_said)) warnings.push_back({true, reason, message, reason});
  };
  for (const auto& [type, spec] : job.spec.replicas) {
    if (!text_at(spec.pod_template, "/spec/restartPolicy").empty())
      warn("SetPodTemplateRestartPolicy",
           "Restart policy in pod template will be overwritten by restart policy in replica spec");
    const std::string scheduler = scheduler_name(spec.pod_template);
    if (settings.gang_scheduler != GangScheduler::None && !scheduler.empty() &&
        scheduler != settings.gang_scheduler_name)
      warn("SetPodTemplateSchedulerName",
           "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten");
  }
  return warnings;
}

}  // namespace trainyard::decide
