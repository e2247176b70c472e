#include "decide/objects/environment.h"

#include <fmt/format.h>

#include "api/ports.h"
#include "decide/objects/names.h"

namespace trainyard::decide {
namespace {

class Environment {
 public:
  void add(const char* name, std::string value) { entries_.push_back({{"name", name}, {"value", std::move(value)}}); }
  void add(const char* name, int64_t value) { add(name, fmt::format("{}", value)); }
  void add_secret(const char* name, const std::string& secret, const char* key) {
    entries_.push_back(
        {{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", key}, {"optional", true}}}}}});
  }
  [[nodiscard]] Json take() { return std::move(entries_); }

 private:
  Json entries_ = Json::array();
};

void add_ranks(Environment& environment, const api::Job& job, api::ReplicaType type, int index) {
  if (has_master(job)) {
    const std::string master = replica_name(job, api::ReplicaType::Master, 0);
    const int port = port_of(job.spec.replicas.at(api::ReplicaType::Master));
    environment.add("MASTER_PORT", port);
    environment.add("PET_MASTER_PORT", port);
    environment.add("MASTER_ADDR", master);
    environment.add("PET_MASTER_ADDR", master);
  }
  const int rank = rank_of(job, type, index);
  environment.add("WORLD_SIZE", int64_t{total_replicas(job)} * processes_per_replica(job));
  environment.add("RANK", rank);
  if (has_master(job)) environment.add("PET_NODE_RANK", rank);
}

void add_rendezvous(Environment& environment, const api::Job& job) {
  const api::ElasticPolicy& elastic = *job.spec.elastic;
  const auto worker = job.spec.replicas.find(api::ReplicaType::Worker);
  const int port =
      elastic.rdzv_port.value_or(worker == job.spec.replicas.end() ? api::kDefaultPort : port_of(worker->second));
  const std::string host =
      elastic.rdzv_host.empty() ? replica_name(job, api::ReplicaType::Worker, 0) : elastic.rdzv_host;
  environment.add("PET_RDZV_ENDPOINT", fmt::format("{}:{}", host, port));
  environment.add("PET_RDZV_BACKEND", elastic.rdzv_backend.empty() ? "c10d" : elastic.rdzv_backend);
  environment.add("PET_NNODES",
                  fmt::format("{}:{}", elastic.min_replicas.value_or(1), elastic.max_replicas.value_or(1)));
  if (elastic.max_restarts) environment.add("PET_MAX_RESTARTS", *elastic.max_restarts);
  if (elastic.nproc_per_node) environment.add("PET_NPROC_PER_NODE", *elastic.nproc_per_node);
  if (!elastic.rdzv_id.empty()) environment.add("PET_RDZV_ID", elastic.rdzv_id);
  std::string conf;
  for (const auto& [key, value] : elastic.rdzv_conf)
    conf += fmt::format("{}{}={}", conf.empty() ? "" : ",", key, value);
  if (!conf.empty()) environment.add("PET_RDZV_CONF", conf);
  if (elastic.standalone) environment.add("PET_STANDALONE", "");
}

void add_our_own(Environment& environment, const api::Job& job, api::ReplicaType type, int64_t generation,
                 const Settings& settings) {
  environment.add(api::kGenerationVariable, generation);
  environment.add(api::kTemplateVariable, template_digest_of(job.spec.replicas.at(type)));
  environment.add_secret("TRAINYARD_JOB_TOKEN", token_secret_name(job), "token");
  if (settings.progress_url.empty()) return;
  environment.add("TRAINYARD_PROGRESS_URL", fmt::format("{}/{}/{}", settings.progress_url, job.ns, job.name));
  // In the pod itself, as it is public: a Secret of the job would keep the authorities of the job's beginning.
  if (!settings.progress_ca.empty()) environment.add("TRAINYARD_PROGRESS_CA", settings.progress_ca);
}

}  // namespace

int port_of(const api::ReplicaSpec& spec) {
  const Json* const container = training_container(spec.pod_template);
  const Json* const ports = container ? list_at(*container, "/ports") : nullptr;
  const auto place = ports ? api::meeting_port(*ports) : std::nullopt;
  if (!place) return api::kDefaultPort;
  return static_cast<int>(int_at((*ports)[*place], "/containerPort").value_or(api::kDefaultPort));
}

Json environment_of(const api::Job& job, api::ReplicaType type, int index, int64_t generation,
                    const Settings& settings) {
  Environment environment;
  environment.add("PYTHONUNBUFFERED", "1");
  add_ranks(environment, job, type, index);
  if (job.spec.nproc_per_node) environment.add("PET_NPROC_PER_NODE", *job.spec.nproc_per_node);
  if (job.spec.elastic) {
    add_rendezvous(environment, job);
  } else {
    environment.add("PET_NNODES", total_replicas(job));
  }
  add_our_own(environment, job, type, generation, settings);
  return environment.take();
}

}  // namespace trainyard::decide
