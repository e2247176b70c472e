#include "decide/rules/converge.h"

#include <optional>

#include "api/annotations.h"
#include "decide/objects/names.h"
#include "decide/rules/failures.h"
#include "decide/rules/restart.h"

namespace trainyard::decide {
namespace {

/// Deletes a pod that must go before its name is free.
void make_room(Plan& plan, const Draft& draft, const api::Pod& pod) {
  if (!is_on_lost_node(pod, draft)) return plan.remove(pod, draft.now);
  if (pod.deleted && pod.grace_seconds == 0 && !pod.is_half_deleted) return;  // a finalizer of somebody's holds it
  // Its kubelet will not confirm. In gang scope the new generation makes what may still run there harmless; in replica
  // scope it is for the program to do without the rank, as it does by the reference's taints.
  plan.deletes.push_back({Kind::Pod, pod.name, pod.uid, 0});
}

/// A pod that hangs in Terminating on a node that is lost: nobody there confirms its end.
bool hangs_on_lost_node(const Draft& draft, const api::Pod& pod) {
  return pod.deleted && is_on_lost_node(pod, draft);
}

/// What a failed pod has said can be read, by kubectl logs too, while its place waits for the back-off to be over.
bool is_kept_for_reading(const api::Pod& pod, bool waits) {
  return waits && has_failed(pod) && !pod.deleted;
}

/// Whether this plan may make more, beside what other rules make. If not, the next one goes on.
bool has_room(const Plan& plan, const Draft& draft) {
  return draft.plan.creates.size() + plan.creates.size() < draft.settings.most_creates;
}

void make_pod(Plan& plan, const Draft& draft, const Replica& replica, std::optional<Placement>& placement) {
  if (!has_room(plan, draft)) return plan.look_again_at(draft.now);
  if (!placement) placement = {draft.status.restarts.generation, nodes_to_avoid(draft)};
  plan.creates.push_back({Kind::Pod, replica.name, pod_object(draft.job(), replica, draft.settings, *placement)});
}

void make_service(Plan& plan, const Draft& draft, const Replica& replica) {
  if (!has_room(plan, draft)) return plan.look_again_at(draft.now);
  plan.creates.push_back({Kind::Service, replica.name, service_object(draft.job(), replica)});
}

/// What the pods refer to, before the first of them.
void prepare(Plan& plan, const Draft& draft) {
  const api::Job& job = draft.job();
  if (!draft.seen.token_is_there)
    plan.prepare.push_back({Kind::Secret, token_secret_name(job), token_secret_object(job)});
  if (annotation_of(job, api::kNetworkPolicyAnnotation) == "true" && !draft.seen.network_policy_is_there)
    plan.prepare.push_back({Kind::NetworkPolicy, network_policy_name(job), network_policy_object(job)});
}

}  // namespace

Plan convergence(const Draft& draft) {
  Plan plan;
  const bool waits = waits_for_back_off(draft.status.restarts, draft.now);
  if (waits) plan.look_again_at(*draft.status.restarts.not_before);
  std::optional<Placement> placement;  // made for the first pod that needs it, as it looks at every node
  int place = -1;
  for (const Replica& replica : draft.gang.replicas) {
    const bool is_done = draft.status.restarts.finished.contains(++place);
    const bool is_free = !replica.pod && !is_done && !draft.seen.foreign_pods.contains(replica.name);
    if (replica.pod && (!is_current(*replica.pod, draft.status) || hangs_on_lost_node(draft, *replica.pod))) {
      if (!is_kept_for_reading(*replica.pod, waits)) make_room(plan, draft, *replica.pod);
    } else if (is_free && !waits && draft.is_let_in) {
      make_pod(plan, draft, replica, placement);
    }
    if (!replica.service && !draft.seen.foreign_services.contains(replica.name)) make_service(plan, draft, replica);
  }
  for (const api::Pod* pod : draft.gang.surplus_pods) make_room(plan, draft, *pod);
  for (const api::Service* service : draft.gang.surplus_services) plan.remove(*service);
  if (!draft.plan.creates.empty() || !plan.creates.empty()) prepare(plan, draft);
  return plan;
}

}  // namespace trainyard::decide
