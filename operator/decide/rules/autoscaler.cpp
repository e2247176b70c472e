#include "decide/rules/autoscaler.h"

#include "api/quantity.h"
#include "decide/objects/names.h"

namespace trainyard::decide {
namespace {

Json wanted_spec(const api::Job& job) {
  const api::ElasticPolicy& elastic = *job.spec.elastic;
  return {{"minReplicas", elastic.min_replicas.value_or(1)},
          {"maxReplicas", elastic.max_replicas.value_or(1)},
          {"scaleTargetRef", {{"apiVersion", api::kApiVersion}, {"kind", api::kKind}, {"name", job.name}}},
          {"metrics", elastic.metrics}};
}

/// The API server writes a quantity in its own way: 1024Mi as 1Gi, 10 as "10".
bool is_same_quantity(const Json& is, const Json& wanted) {
  const auto there = api::Quantity::parse_json(is);
  return there && there == api::Quantity::parse_json(wanted);
}

/// What the job asks of the autoscaler, without what the API server filled in beside it.
bool asks_for_more(const Json& is, const Json& wanted) {
  if (wanted.is_object()) {
    if (!is.is_object()) return true;
    for (const auto& [key, value] : wanted.items()) {
      if (!is.contains(key)) return true;
      const bool is_quantity = key == "value" || key == "averageValue";
      if (is_quantity && is_same_quantity(is[key], value)) continue;
      if (asks_for_more(is[key], value)) return true;
    }
    return false;
  }
  if (wanted.is_array()) {
    if (!is.is_array() || is.size() != wanted.size()) return true;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (asks_for_more(is[i], wanted[i])) return true;
    return false;
  }
  return is != wanted;
}

}  // namespace

Plan autoscaler_plan(const Observed& seen) {
  const api::Job& job = seen.job;
  const bool is_wanted = job.spec.elastic && job.spec.elastic->metrics.is_array() && !job.spec.elastic->metrics.empty();
  if (!is_wanted) return autoscaler_removal(seen);
  Plan plan;
  Json spec = wanted_spec(job);
  const api::Autoscaler* const there = seen.autoscaler;
  if (!there) {
    plan.creates.push_back({Kind::Autoscaler,  // beside the pods: they do not need it
                            job.name,
                            {{"apiVersion", "autoscaling/v2"},
                             {"kind", "HorizontalPodAutoscaler"},
                             {"metadata", owned_metadata(job, job.name)},
                             {"spec", std::move(spec)}}});
  } else if (asks_for_more(there->spec, spec)) {
    plan.patches.push_back({Kind::Autoscaler, there->name, there->resource_version, {{"spec", std::move(spec)}}});
  }
  return plan;
}

Plan autoscaler_removal(const Observed& seen) {
  Plan plan;
  const api::Autoscaler* const there = seen.autoscaler;
  if (there && !there->deleted) plan.deletes.push_back({Kind::Autoscaler, there->name, there->uid});
  return plan;
}

}  // namespace trainyard::decide
