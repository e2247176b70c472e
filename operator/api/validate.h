#pragma once

#include <string>
#include <vector>

#include "api/verdict.h"
#include "base/json.h"

namespace trainyard::api {

/// The webhook's rules: pure, any thread. `old_job` is null on creation.
[[nodiscard]] Verdict validate(const Json& job, const Json* old_job);

/// The structural schema's rules, for those who have no API server (`validate -f`, `run -f`): types, required and
/// unknown fields, each with its path and what is allowed, the nearest known name for an unknown one.
[[nodiscard]] Verdict validate_schema(const Json& job);

}  // namespace trainyard::api
