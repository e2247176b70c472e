#pragma once

#include <string>
#include <vector>

#include "api/verdict.h"
#include "base/json.h"

namespace trainyard::api {

/// What the API server would refuse in the pods and services that are made from a replica's template, with defaults set
/// or without, although it takes it in the job: in its words, with paths below `path`, the template's. Only what it
/// refuses in every release: a job that runs breaks no rule of these. Pure, any thread.
[[nodiscard]] std::vector<Violation> violations_of_pod(const Json& pod_template, const std::string& path);

}  // namespace trainyard::api
