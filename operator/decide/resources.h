#pragma once

#include "api/quantity.h"
#include "base/json.h"

namespace trainyard::decide {

/// What a pod of this template asks for: over its containers the sum of requests and, of resources without one, limits,
/// which the API takes for requests too.
[[nodiscard]] api::Resources resources_of(const Json& pod_template);

}  // namespace trainyard::decide
