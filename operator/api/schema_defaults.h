#pragma once

#include <string>

#include "base/json.h"

namespace trainyard::api {

/// Does to a value what an API server does by a structural schema before it checks it: a field that has a default takes
/// it where it is absent or null; other nulls of objects' fields are dropped. What is nullable or unknown stays, and so
/// does a null in a list.
void apply_defaults(Json& value, const Json& schema);

/// The schema of an object's field; null where the field is unknown. Borrowed from `schema`.
[[nodiscard]] const Json* schema_of_field(const std::string& key, const Json& schema);

/// The schema of any object's metadata, which the schema of its resource leaves to the API server.
[[nodiscard]] const Json& metadata_schema();

}  // namespace trainyard::api
