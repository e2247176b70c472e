#pragma once

#include <string>

#include "api/validate.h"

namespace trainyard::api {

/// Checks a value as the API server checks it against a structural schema: type, required, enum, pattern, minimum and
/// maximum, items, properties, additionalProperties, keys of list maps; not its CEL rules, which are about changes.
/// Unknown fields are violations where the API server would drop them, and warnings where they only look misspelt.
[[nodiscard]] Verdict check_schema(const Json& value, const Json& schema, const std::string& path = "");

}  // namespace trainyard::api
