#pragma once

#include <functional>
#include <string>

#include "base/json.h"

// These are the API server's rules about fields of a pod beyond their types, in its words (pkg/apis/core/validation).
// They are pure.
namespace trainyard::api {

/// Takes a violation: its path and its message.
using Refuse = std::function<void(const std::string& path, const std::string& message)>;

/// This checks the policy of pulling, names of variables, amounts of resources, probes and hooks of the container at `path`.
void check_container_fields(const Json& container, const std::string& path, const Refuse& refuse);
/// This checks the volumes of a pod's specification at `path`, and what its containers mount of them.
void check_volumes(const Json& spec, const std::string& path, const Refuse& refuse);
/// This checks DNS, host name, deadline, tolerations and the selector of nodes of a pod's specification at `path`.
void check_pod_fields_alone(const Json& spec, const std::string& path, const Refuse& refuse);
/// This checks labels and annotations of the metadata at `path`.
void check_labels(const Json& metadata, const std::string& path, const Refuse& refuse);

}  // namespace trainyard::api
