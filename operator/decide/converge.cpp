#include "decide/converge.h"

#include <optional>

#include "api/annotations.h"
#include "decide/failures.h"
#include "decide/names.h"

namespace trainyard::decide {
namespace {

/// A pod that must go before its name is free.
void make_room(Draft& draft, const api::Pod& pod) {
  if (!is_on_lost_node(pod, draft)) return draft.remove(pod);
  if (pod.deleted && pod.grace_seconds == 0 && !pod.is_half_deleted) return;  // a finalizer of somebody's holds it
  // Its kubelet will not confirm. The new generation makes what may still run there harmless.
  draft.plan.deletes.push_back({Kind::Pod, pod.name, pod.uid, 0});
}

/// A pod that hangs in Terminating on a node that is gone for good. Under replica scope no generation fences it off, so
/// only the Node object's end counts.
bool hangs_on_gone_node(const Draft& draft, const api::Pod& pod) {
  return pod.deleted && draft.settings.watches_nodes && !draft.find_node(pod.node) && is_on_lost_node(pod, draft);
}

bool must_wait(Draft& draft) {
  const auto& not_before = draft.status.restarts.not_before;
  if (!not_before || *not_before <= draft.now) return false;
  draft.look_again_at(*not_before);
  return true;
}

/// Whether this plan may make more. If not, the next one goes on, at once.
bool has_room(Draft& draft) {
  if (draft.plan.creates.size() < draft.settings.most_creates) return true;
  draft.look_again_at(draft.now);
  return false;
}

/// What the pods refer to, before the first of them.
void prepare(Draft& draft) {
  const api::Job& job = draft.job();
  if (!draft.seen.token_is_there)
    draft.plan.prepare.push_back({Kind::Secret, token_secret_name(job), token_secret_object(job, draft.settings)});
  if (annotation_of(job, api::kNetworkPolicyAnnotation) == "true" && !draft.seen.network_policy_is_there)
    draft.plan.prepare.push_back({Kind::NetworkPolicy, network_policy_name(job), network_policy_object(job)});
}

}  // namespace

void converge(Draft& draft) {
  const bool waits = must_wait(draft);
  std::optional<Placement> placement;  // made for the first pod that needs it, as it looks at every node
  for (const Replica& replica : draft.gang.replicas) {
    const bool is_free = !replica.pod && !draft.seen.foreign_pods.contains(replica.name);
    if (replica.pod && (!is_current(*replica.pod, draft.status) || hangs_on_gone_node(draft, *replica.pod))) {
      make_room(draft, *replica.pod);
    } else if (is_free && !waits && draft.is_let_in && has_room(draft)) {
      if (!placement) placement = {draft.status.restarts.generation, nodes_to_avoid(draft)};
      draft.plan.creates.push_back(
          {Kind::Pod, replica.name, pod_object(draft.job(), replica, draft.settings, *placement)});
    }
    if (!replica.service && !draft.seen.foreign_services.contains(replica.name) && has_room(draft))
      draft.plan.creates.push_back({Kind::Service, replica.name, service_object(draft.job(), replica)});
  }
  for (const api::Pod* pod : draft.gang.surplus_pods) make_room(draft, *pod);
  for (const api::Service* service : draft.gang.surplus_services) draft.remove(*service);
  if (!draft.plan.creates.empty()) prepare(draft);
}

}  // namespace trainyard::decide
