#include "decide/rules/pod_group.h"

#include <fmt/format.h>

#include "decide/objects/names.h"
#include "decide/objects/resources.h"

namespace trainyard::decide {
namespace {

/// Sum over the first `members` pods by rank.
Json min_resources(const Gang& gang, int members) {
  api::Resources sum;
  for (const Replica& replica : gang.replicas) {
    if (members-- <= 0) break;
    for (const auto& [resource, quantity] : resources_of(replica.spec->pod_template, Limits::Reference))
      sum[resource] += quantity;
  }
  Json texts = Json::object();
  for (const auto& [resource, quantity] : sum) texts[resource] = quantity.text();
  return texts;
}

Json wanted_spec(const Draft& draft) {
  const auto& scheduling = draft.policy().scheduling;
  const int total = static_cast<int>(draft.gang.replicas.size());
  const int members = scheduling ? scheduling->min_available.value_or(total) : total;
  Json spec = {{"minMember", members}};
  spec["minResources"] = scheduling && !scheduling->min_resources.is_null() ? scheduling->min_resources
                                                                            : min_resources(draft.gang, members);
  if (draft.settings.gang_scheduler == GangScheduler::Volcano) {
    spec["queue"] = scheduling && !scheduling->queue.empty() ? scheduling->queue : "default";
    if (scheduling && !scheduling->priority_class.empty()) spec["priorityClassName"] = scheduling->priority_class;
  } else if (scheduling && scheduling->schedule_timeout_seconds) {
    spec["scheduleTimeoutSeconds"] = *scheduling->schedule_timeout_seconds;
  }
  return spec;
}

Json pod_group_object(const Draft& draft, Json spec) {
  const bool is_volcano = draft.settings.gang_scheduler == GangScheduler::Volcano;
  Json metadata = owned_metadata(draft.job(), draft.job().name);
  if (!draft.job().annotations.empty()) metadata["annotations"] = draft.job().annotations;
  return {{"apiVersion", is_volcano ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1"},
          {"kind", "PodGroup"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

}  // namespace

bool is_let_in(const Observed& seen, const Settings& settings) {
  if (settings.gang_scheduler != GangScheduler::Volcano) return true;
  const api::PodGroup* const group = seen.pod_group;
  return group && !group->phase.empty() && group->phase != "Pending";
}

Plan pod_group_plan(const Draft& draft) {
  Plan plan;
  if (draft.settings.gang_scheduler == GangScheduler::None) return plan;
  const api::PodGroup* const group = draft.seen.pod_group;
  Json spec = wanted_spec(draft);
  if (!group) {
    plan.prepare.push_back({Kind::PodGroup, draft.job().name, pod_group_object(draft, std::move(spec))});
    return plan;
  }
  if (group->spec.contains("queue")) spec["queue"] = group->spec["queue"];  // never changed once it is set
  Json merge = merge_patch_between(group->spec, spec);
  for (auto entry = merge.begin(); entry != merge.end();)  // what others set there stays
    entry = entry->is_null() ? merge.erase(entry) : std::next(entry);
  if (!merge.empty())
    plan.patches.push_back({Kind::PodGroup, group->name, group->resource_version, {{"spec", std::move(merge)}}});
  return plan;
}

Plan pod_group_removal(const Observed& seen) {
  Plan plan;
  const api::PodGroup* const group = seen.pod_group;
  if (!group || group->deleted) return plan;
  plan.say(false, "JobTerminated", "Job has been terminated. Deleting PodGroup", "terminated " + group->uid);
  plan.deletes.push_back({Kind::PodGroup, group->name, group->uid});
  return plan;
}

}  // namespace trainyard::decide
