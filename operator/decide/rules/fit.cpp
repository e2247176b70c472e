#include "decide/rules/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "decide/objects/names.h"
#include "decide/objects/resources.h"

namespace trainyard::decide {
namespace {

constexpr const char* kHostname = "kubernetes.io/hostname";

bool has_labels(const api::Node& node, const Json& selector) {
  for (const auto& [key, value] : selector.items()) {
    const auto found = node.labels.find(key);
    if (found == node.labels.end() || !value.is_string() || found->second != value.get_ref<const std::string&>())
      return false;
  }
  return true;
}

std::string text_of_labels(const Json& selector) {
  std::string text;
  for (const auto& [key, value] : selector.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value.is_string() ? value.get<std::string>() : "?");
  return text;
}

/// The first resource of which `node` has less than `asked`, however empty it is.
std::optional<std::string> what_lacks(const api::Node& node, const api::Resources& asked) {
  for (const auto& [resource, quantity] : asked) {
    const auto has = node.allocatable.find(resource);
    const auto amount =
        has == node.allocatable.end() ? api::Quantity() : api::Quantity::parse(has->second).value_or(api::Quantity());
    if (amount < quantity) return fmt::format("{} {}", quantity.text(), resource);
  }
  return std::nullopt;
}

/// "no node has label pool=gpu", "no node offers 8 nvidia.com/gpu": of one pod alone.
std::string why_one_never_fits(const Draft& draft, const Replica& replica) {
  const Json* const given = object_at(replica.spec->pod_template, "/spec/nodeSelector");
  const Json selector = given ? *given : Json::object();
  const api::Resources asked = resources_of(replica.spec->pod_template, Limits::All);
  bool is_any_selected = false;
  std::string lack;
  for (const auto& [name, node] : draft.nodes()) {
    if (!has_labels(*node, selector)) continue;
    is_any_selected = true;
    const auto lacks = what_lacks(*node, asked);
    if (!lacks) return "";
    if (lack.empty()) lack = *lacks;
  }
  const std::string pods = fmt::format("{} pods", api::name_of(replica.type));
  if (!is_any_selected)
    return fmt::format("{} ask for nodes with {}, and no node has that; label a node or change nodeSelector", pods,
                       text_of_labels(selector));
  return fmt::format("{} ask for {} each, and no node{} offers that; ask for less or add a bigger node", pods, lack,
                     selector.empty() ? "" : " they select");
}

/// A required affinity by hostname to the job's own pods: all that carry it must be on one host.
bool must_share_host(const api::Job& job, const Replica& replica) {
  const Json* const terms =
      list_at(replica.spec->pod_template, "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution");
  if (!terms) return false;
  return std::ranges::any_of(*terms, [&](const Json& term) {
    if (text_at(term, "/topologyKey") != kHostname) return false;
    const Json* const labels = find(term, "/labelSelector/matchLabels");
    if (labels && labels->contains(kJobNameLabel) && labels->at(kJobNameLabel) == job.name) return true;
    const Json* const rules = list_at(term, "/labelSelector/matchExpressions");
    if (!rules) return false;
    return std::ranges::any_of(*rules, [&](const Json& rule) {
      const Json* const values = list_at(rule, "/values");
      return text_at(rule, "/key") == kJobNameLabel && text_at(rule, "/operator") == "In" && values &&
             std::ranges::find(*values, Json(job.name)) != values->end();
    });
  });
}

/// What the pods that share a host ask for together, and how many they are.
std::string why_together_never(const Draft& draft) {
  api::Resources together;
  int count = 0;
  for (const Replica& replica : draft.gang.replicas) {
    if (!must_share_host(draft.job(), replica)) continue;
    ++count;
    for (const auto& [resource, quantity] : resources_of(replica.spec->pod_template, Limits::All))
      together[resource] += quantity;
  }
  if (count < 2) return "";
  std::string lack;
  for (const auto& [name, node] : draft.nodes()) {
    const auto lacks = what_lacks(*node, together);
    if (!lacks) return "";
    if (lack.empty()) lack = *lacks;
  }
  return fmt::format(
      "{} pods must share one host (required affinity by {}) and ask for {} together, and no node offers that; prefer "
      "rather than require the affinity, ask for less, or use fewer replicas",
      count, kHostname, lack);
}

/// A node that a cloud or an autoscaler has made says so in its providerID. Where one has, a node that fits may be
/// made, too. Some distributions write an id of their own on machines that nobody makes.
bool may_be_made(const api::Node& node) {
  constexpr std::array kMakeNone = {"kind", "k3s", "k0s", "rke2", "minikube"};
  const std::string maker = node.provider_id.substr(0, node.provider_id.find(':'));
  return !maker.empty() && std::ranges::find(kMakeNone, maker) == kMakeNone.end();
}

}  // namespace

std::string why_it_never_fits(const Draft& draft) {
  if (!draft.settings.watches_nodes || draft.nodes().empty()) return "";
  if (std::ranges::any_of(draft.nodes(), [](const auto& entry) { return may_be_made(*entry.second); })) return "";
  const api::ReplicaSpec* last = nullptr;
  for (const Replica& replica : draft.gang.replicas) {  // pods of one type are alike
    if (replica.spec == last || (replica.pod && !replica.pod->node.empty())) continue;
    last = replica.spec;
    if (std::string why = why_one_never_fits(draft, replica); !why.empty()) return why;
  }
  const auto is_waiting = [](const Replica& replica) { return !replica.pod || replica.pod->node.empty(); };
  return std::ranges::any_of(draft.gang.replicas, is_waiting) ? why_together_never(draft) : "";
}

}  // namespace trainyard::decide
