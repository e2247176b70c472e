#pragma once

#include <string>

#include "base/json.h"

// Objects as an API server has them, all of the namespace "ns".
namespace trainyard::controller::test {

inline const std::string kJobs = "/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs", kJob = kJobs + "/job";
inline const std::string kPods = "/api/v1/namespaces/ns/pods", kServices = "/api/v1/namespaces/ns/services",
                         kSecrets = "/api/v1/namespaces/ns/secrets",
                         kAutoscalers = "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers";

/// A pod, a service or the like of version 20 that a job called "job" with that uid controls.
[[nodiscard]] Json object_of(const char* kind, const std::string& name, const std::string& owner_uid = "uid-job");
/// The job called "job" with the uid "uid-job".
[[nodiscard]] Json job_object(const std::string& version = "10", const Json& status = Json::object());

}  // namespace trainyard::controller::test
