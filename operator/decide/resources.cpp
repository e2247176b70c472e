#include "decide/resources.h"

namespace trainyard::decide {

api::Resources resources_of(const Json& pod_template) {
  api::Resources sum;
  const Json* const containers = find(pod_template, "/spec/containers");
  if (!containers || !containers->is_array()) return sum;
  for (const Json& container : *containers) {
    api::Resources asked;
    for (const char* kind : {"/resources/limits", "/resources/requests"}) {
      const Json* const given = find(container, kind);
      if (!given || !given->is_object()) continue;
      for (const auto& [resource, quantity] : given->items())
        if (const auto parsed = api::Quantity::parse_json(quantity)) asked[resource] = *parsed;
    }
    for (const auto& [resource, quantity] : asked) sum[resource] += quantity;
  }
  return sum;
}

}  // namespace trainyard::decide
