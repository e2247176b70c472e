#include "unit/operator/decide/world.h"

#include <fmt/format.h>

#include "decide/objects/names.h"
#include "decide/rules/gang.h"

namespace trainyard::decide::test {
namespace {

api::Job job_of(const Json& spec, const Json& annotations) {
  api::Job job = api::parse_job({{"apiVersion", "kubeflow.org/v1"},
                                 {"kind", "PyTorchJob"},
                                 {"metadata",
                                  {{"name", "job"},
                                   {"namespace", "ns"},
                                   {"uid", "0badcafe-0000"},
                                   {"resourceVersion", "1"},
                                   {"annotations", annotations}}},
                                 {"spec", spec}});
  api::set_defaults(job);
  return job;
}

}  // namespace

Json spec_of(int workers, const Json& changes, const std::string& restart) {
  const Json replica = {{"restartPolicy", restart},
                        {"template", {{"spec", {{"containers", {{{"name", "pytorch"}, {"image", "i"}}}}}}}}};
  Json spec = {{"pytorchReplicaSpecs", {{"Master", replica}, {"Worker", replica}}}};
  spec["pytorchReplicaSpecs"]["Master"]["replicas"] = 1;
  spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = workers;
  spec.merge_patch(changes);
  return spec;
}

World running_gang(const Json& changes, const std::string& restart) {
  World world(spec_of(2, changes, restart));
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

World::World(const Json& spec, const Json& annotations) : job(job_of(spec, annotations)) {
  add_node("node-1");
}

Plan World::look() const {
  Observed seen{job, {}, {}};
  for (const auto& [name, pod] : pods) seen.pods.push_back(&pod);
  for (const auto& [name, service] : services) seen.services.push_back(&service);
  Nodes by_name;
  for (const auto& [name, node] : nodes) by_name[name] = &node;
  seen.nodes = &by_name;
  if (progress)
    seen.post = api::ProgressPost{.progress = *progress,
                                  .generation = poster.value_or(job.status.restarts.generation),
                                  .refusal = refusal};
  seen.listens_since = listens_since;
  seen.refused = refused;
  seen.foreign_pods = foreign_pods;
  seen.foreign_kinds = foreign_kinds;
  seen.kubelet_warnings = kubelet_warnings;
  seen.token_is_there = is_token_there;
  seen.pod_group = pod_group ? &*pod_group : nullptr;
  seen.autoscaler = autoscaler ? &*autoscaler : nullptr;
  return decide(seen, settings, now);
}

void World::create(const Create& wanted) {
  Json object = wanted.object;
  object["metadata"]["uid"] = fmt::format("uid-{}", next_uid_++);
  object["metadata"]["creationTimestamp"] = format_time(now);
  object["status"] = {{"phase", "Pending"}};
  if (wanted.kind == Kind::Pod) pods[wanted.name] = api::parse_pod(object);
  if (wanted.kind == Kind::Service) services[wanted.name] = api::parse_service(object);
  if (wanted.kind == Kind::Secret) is_token_there = true;
}

void World::remove(const Delete& wanted) {
  if (wanted.kind == Kind::Job) is_job_deleted = true;
  if (wanted.kind == Kind::Service) services.erase(wanted.name);
  const auto pod = pods.find(wanted.name);
  if (wanted.kind != Kind::Pod || pod == pods.end() || pod->second.uid != wanted.uid) return;
  const bool lingers = !pod->second.node.empty() && !has_ended(pod->second) && wanted.grace_seconds != 0;
  if (lingers) {
    pod->second.deleted = now;
  } else {
    pods.erase(pod);
  }
}

void World::carry_out(const Plan& plan, size_t writes) {
  if (plan.status) job.status = *plan.status;
  for (const EventText& event : plan.events) {
    const bool is_said = !event.once.empty() &&
                         std::ranges::any_of(events, [&](const EventText& one) { return one.once == event.once; });
    if (!is_said) events.push_back(event);
  }
  size_t done = 0;
  for (const Create& wanted : plan.prepare)
    if (done++ < writes) create(wanted);
  for (const Delete& wanted : plan.deletes)
    if (done++ < writes) remove(wanted);
  for (const Create& wanted : plan.creates)
    if (done++ < writes) create(wanted);
}

int World::settle() {
  for (int turns = 0; turns < 50; ++turns) {
    const Plan plan = look();
    if (plan.writes_nothing()) return turns;
    carry_out(plan);
  }
  throw std::logic_error("it does not settle");
}

void World::run(const std::string& name, const std::string& node) {
  api::Pod& pod = pods.at(name);
  pod.phase = "Running";
  pod.node = node;
  pod.started = now;
  pod.conditions.clear();
  pod.containers = {{"pytorch", false, api::ContainerState::Running}};
}

void World::run_all() {
  for (auto& [name, pod] : pods)
    if (!has_ended(pod) && !pod.deleted) run(name);
}

void World::end(const std::string& name, int exit_code, const std::string& message) {
  api::Pod& pod = pods.at(name);
  pod.phase = exit_code == 0 ? "Succeeded" : "Failed";
  pod.containers = {
      {"pytorch", false, api::ContainerState::Terminated, exit_code == 0 ? "Completed" : "Error", message, exit_code}};
}

void World::finish_all_ending() {
  std::erase_if(pods, [](const auto& entry) { return entry.second.deleted.has_value(); });
}

void World::add_node(const std::string& name, bool is_ready) {
  nodes[name].name = name;
  nodes[name].is_ready = is_ready;
  nodes[name].ready_since = now;
}

std::string World::state() const {
  return job.status.conditions.empty() ? "" : job.status.conditions.back().type;
}

std::string World::trouble() const {
  const api::Condition* const found = find_condition(job.status, condition::kTrouble);
  return found ? found->reason : "";
}

std::vector<std::string> World::said(const std::string& reason) const {
  std::vector<std::string> messages;
  for (const EventText& event : events)
    if (event.reason == reason) messages.push_back(event.message);
  return messages;
}

}  // namespace trainyard::decide::test
