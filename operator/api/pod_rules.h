#pragma once

#include <string>
#include <vector>

#include "api/verdict.h"
#include "base/json.h"

namespace trainyard::api {

/// These are violations that the API server finds in the pods and services of a replica's template, but not in the job.
/// The messages are the server's, the paths lie below `path`, the template's. The template may have its defaults or not.
/// Every release of the server refuses them, so a job that runs has none. Pure, any thread.
[[nodiscard]] std::vector<Violation> violations_of_pod(const Json& pod_template, const std::string& path);

}  // namespace trainyard::api
