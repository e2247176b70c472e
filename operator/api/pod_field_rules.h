#pragma once

#include <string>

#include "api/field_error.h"
#include "base/json.h"

// These are the API server's rules about fields of a pod as a whole beyond their types (pkg/apis/core/validation). They
// are pure.
namespace trainyard::api {

/// This checks DNS, host name, deadline, users and groups, containers that may come only later, tolerations, and what
/// selects and spreads over nodes, of a pod's specification at `path`.
void check_pod_fields(const Json& spec, const std::string& path, const Refuse& refuse);
/// This checks labels and annotations of the metadata at `path`.
void check_labels(const Json& metadata, const std::string& path, const Refuse& refuse);

}  // namespace trainyard::api
