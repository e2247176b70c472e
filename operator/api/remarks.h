#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace trainyard::api {

/// Values of a job that the reference accepts, and manifests may therefore have, but that mean nothing: each with its
/// path and what is known. The webhook hands them on as warnings, which kubectl shows.
[[nodiscard]] std::vector<std::string> remarks_on(const Json& job);

}  // namespace trainyard::api
