#pragma once

#include <functional>
#include <string>

#include "base/json.h"

// What the API server asks of fields of a pod beyond their types, in its words (pkg/apis/core/validation). Pure.
namespace trainyard::api {

/// Takes a violation: its path and its message.
using Refuse = std::function<void(const std::string& path, const std::string& message)>;

/// Policy of pulling, names of variables, amounts of resources, probes and hooks of the container at `path`.
void check_container_fields(const Json& container, const std::string& path, const Refuse& refuse);
/// The volumes of a pod's specification at `path`, and what its containers mount of them.
void check_volumes(const Json& spec, const std::string& path, const Refuse& refuse);
/// DNS, host name, deadline, tolerations and the selector of nodes of a pod's specification at `path`.
void check_pod_fields_alone(const Json& spec, const std::string& path, const Refuse& refuse);
/// Labels and annotations of the metadata at `path`.
void check_labels(const Json& metadata, const std::string& path, const Refuse& refuse);

}  // namespace trainyard::api
