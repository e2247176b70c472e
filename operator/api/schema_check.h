#pragma once

#include <string>

#include "api/verdict.h"
#include "base/json.h"

namespace trainyard::api {

/// Checks a value as the API server checks it against a structural schema: type, required, enum, pattern, minimum and
/// maximum, items, properties, additionalProperties, keys of list maps; not its CEL rules, which are about changes.
/// Unknown fields are violations where the API server would drop them. Where it passes them on, as in pods, which a newer
/// Kubernetes gives new fields, those that are a misspelling of a known one are violations, and others are warnings.
[[nodiscard]] Verdict check_schema(const Json& value, const Json& schema, const std::string& path = "");

/// The same for unknown fields alone, of what the API server has checked otherwise.
[[nodiscard]] Verdict check_field_names(const Json& value, const Json& schema, const std::string& path);

/// The same of an object's metadata, of whatever kind the object is.
[[nodiscard]] Verdict check_metadata(const Json& object);

}  // namespace trainyard::api
