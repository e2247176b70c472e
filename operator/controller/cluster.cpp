#include "controller/cluster.h"

#include <fmt/format.h>

#include <stdexcept>

#include "decide/objects/names.h"

namespace trainyard::controller {
namespace {

WatchedJob parse_watched_job(const Json& object) {
  WatchedJob watched;
  try {
    static_cast<api::Job&>(watched) = api::parse_job(object);
    api::set_defaults(watched);
  } catch (const api::ParseError& error) {
    static_cast<api::Meta&>(watched) = api::parse_meta(object);
    watched.defect = error.what();
  }
  return watched;
}

/// Pods and services carry the operator's label, ours and the reference's alike, so that a big cluster's others stay
/// out of our memory.
kube::Selection labelled(const kube::Resource& resource, const std::string& ns) {
  return {resource, ns, fmt::format("{}={}", decide::kOperatorLabel, decide::kOperatorName)};
}

std::string owner_key(const api::Meta& meta) {
  return meta.controller && meta.controller->kind == api::kKind ? fmt::format("{}/{}", meta.ns, meta.controller->name)
                                                                : "";
}

}  // namespace

std::string key_of(const api::Meta& meta) {
  return fmt::format("{}/{}", meta.ns, meta.name);
}

const kube::Resource& resource_of(decide::Kind kind, decide::GangScheduler gang_scheduler) {
  switch (kind) {
    case decide::Kind::Job:
      return kube::kJobs;
    case decide::Kind::Pod:
      return kube::kPods;
    case decide::Kind::Service:
      return kube::kServices;
    case decide::Kind::Secret:
      return kube::kSecrets;
    case decide::Kind::NetworkPolicy:
      return kube::kNetworkPolicies;
    case decide::Kind::Autoscaler:
      return kube::kAutoscalers;
    case decide::Kind::PodGroup:
      return gang_scheduler == decide::GangScheduler::Volcano ? kube::kVolcanoPodGroups
                                                              : kube::kSchedulerPluginsPodGroups;
  }
  throw std::logic_error("resource_of: no such kind");
}

template <typename T>
auto Cluster::follow(Owned<T>& index) {
  return [this, &index](const std::shared_ptr<const T>& before, const std::shared_ptr<const T>& after) {
    index.change(before, after);
    for (const auto& object : {before, after})
      if (const std::string key = object ? owner_key(*object) : ""; !key.empty()) on_change_(key);
  };
}

Cluster::Cluster(kube::Client& client, const Settings& settings, OnJob on_job, OnChange on_change, OnTrouble on_trouble)
    : settings_(settings),
      on_job_(std::move(on_job)),
      on_change_(std::move(on_change)),
      on_trouble_(std::move(on_trouble)),
      jobs_(client, {kube::kJobs, settings.ns}, parse_watched_job,
            [this](const auto& before, const auto& after) { on_job_(before, after); }),
      pods_(client, labelled(kube::kPods, settings.ns), api::parse_pod, follow(owned_pods_)),
      services_(client, labelled(kube::kServices, settings.ns), api::parse_service, follow(owned_services_)),
      autoscalers_(client, {kube::kAutoscalers, settings.ns}, api::parse_autoscaler, follow(owned_autoscalers_)),
      nodes_(client, {kube::kNodes}, api::parse_node,
             [this](const auto& before, const auto& after) { node_changed(before, after); }),
      pod_groups_(client, {resource_of(decide::Kind::PodGroup, settings.gang_scheduler), settings.ns},
                  api::parse_pod_group, follow(owned_pod_groups_)) {}

template <typename T>
void Cluster::begin(kube::Informer<T>& informer, const char* resource) {
  informer.set_on_trouble([this, resource](const kube::ApiError& error) { on_trouble_(resource, error); });
  informer.start();
}

void Cluster::start() {
  begin(jobs_, "pytorchjobs");
  begin(pods_, "pods");
  begin(services_, "services");
  begin(autoscalers_, "horizontalpodautoscalers");
  if (settings_.watches_nodes) begin(nodes_, "nodes");
  if (settings_.gang_scheduler != decide::GangScheduler::None) begin(pod_groups_, "podgroups");
}

template <typename Self, typename Predicate>
bool Cluster::all_of(Self& self, Predicate holds) {
  const bool have_nodes = !self.settings_.watches_nodes || holds(self.nodes_);
  const bool have_groups = self.settings_.gang_scheduler == decide::GangScheduler::None || holds(self.pod_groups_);
  return holds(self.jobs_) && holds(self.pods_) && holds(self.services_) && holds(self.autoscalers_) && have_nodes &&
         have_groups;
}

bool Cluster::is_synced() const {
  return all_of(*this, [](const auto& informer) { return informer.is_synced(); });
}

bool Cluster::is_current() const {
  return all_of(*this, [](const auto& informer) { return informer.is_current(); });
}

void Cluster::refresh() {
  static_cast<void>(all_of(*this, [](auto& informer) {
    informer.refresh();
    return true;
  }));
}

std::shared_ptr<const WatchedJob> Cluster::job(const std::string& key) const {
  const size_t slash = key.find('/');
  return jobs_.find(key.substr(0, slash), key.substr(slash + 1));
}

void Cluster::for_each_job(const std::function<void(const WatchedJob&)>& look) const {
  jobs_.for_each([&](const std::shared_ptr<const WatchedJob>& job) { look(*job); });
}

/// A node counts by its readiness and its faults; a heartbeat changes neither.
void Cluster::node_changed(const std::shared_ptr<const api::Node>& before,
                           const std::shared_ptr<const api::Node>& after) {
  const std::string& name = (after ? after : before)->name;
  if (after) {
    nodes_by_name_[name] = after.get();
  } else {
    nodes_by_name_.erase(name);
  }
  if (before && after && before->is_ready == after->is_ready &&
      before->bad_conditions.size() == after->bad_conditions.size())
    return;
  pods_.for_each([&](const std::shared_ptr<const api::Pod>& pod) {
    if (pod->node == name && !owner_key(*pod).empty()) on_change_(owner_key(*pod));
  });
}

decide::Observed Cluster::observe(const WatchedJob& job) const {
  decide::Observed seen{job, owned_pods_.of(job.uid), owned_services_.of(job.uid)};
  // Named as the job; of several of ours, which only another program can have made, the first.
  if (const auto groups = owned_pod_groups_.of(job.uid); !groups.empty()) seen.pod_group = groups.front();
  if (const auto found = owned_autoscalers_.of(job.uid); !found.empty()) seen.autoscaler = found.front();
  seen.nodes = &nodes_by_name_;
  return seen;
}

void Cluster::learn(decide::Kind kind, const Json& object) {
  switch (kind) {
    case decide::Kind::Job:
      return jobs_.learn(object);
    case decide::Kind::Pod:
      return pods_.learn(object);
    case decide::Kind::Service:
      return services_.learn(object);
    case decide::Kind::Autoscaler:
      return autoscalers_.learn(object);
    case decide::Kind::PodGroup:
      return pod_groups_.learn(object);
    case decide::Kind::Secret:
    case decide::Kind::NetworkPolicy:
      return;
  }
}

void Cluster::forget(decide::Kind kind, const std::string& ns, const std::string& name, const std::string& uid) {
  switch (kind) {
    case decide::Kind::Job:
      return jobs_.forget(ns, name, uid);
    case decide::Kind::Pod:
      return pods_.forget(ns, name, uid);
    case decide::Kind::Service:
      return services_.forget(ns, name, uid);
    case decide::Kind::Autoscaler:
      return autoscalers_.forget(ns, name, uid);
    case decide::Kind::PodGroup:
      return pod_groups_.forget(ns, name, uid);
    case decide::Kind::Secret:
    case decide::Kind::NetworkPolicy:
      return;
  }
}

}  // namespace trainyard::controller
