#include "decide/objects/resources.h"

#include <string>

namespace trainyard::decide {
namespace {

bool is_extended(const std::string& resource) {
  return resource.find('/') != std::string::npos;
}

api::Resources parsed(const Json& container, const char* pointer) {
  api::Resources resources;
  const Json* const given = object_at(container, pointer);
  if (!given) return resources;
  for (const auto& [resource, quantity] : given->items())
    if (const auto amount = api::Quantity::parse_json(quantity)) resources[resource] = *amount;
  return resources;
}

api::Resources asked_by(const Json& container, Limits limits) {
  api::Resources asked = parsed(container, "/resources/requests");
  const bool takes_all = limits == Limits::All || asked.empty();
  for (const auto& [resource, quantity] : parsed(container, "/resources/limits"))
    if (takes_all || is_extended(resource)) asked.emplace(resource, quantity);
  return asked;
}

}  // namespace

api::Resources resources_of(const Json& pod_template, Limits limits) {
  api::Resources sum;
  const Json* const containers = list_at(pod_template, "/spec/containers");
  if (!containers) return sum;
  for (const Json& container : *containers)
    for (const auto& [resource, quantity] : asked_by(container, limits)) sum[resource] += quantity;
  return sum;
}

}  // namespace trainyard::decide
