#pragma once

#include <optional>
#include <string>

#include "api/field_error.h"
#include "base/json.h"

// These are the API server's rules about fields of containers and volumes beyond their types, in its words
// (pkg/apis/core/validation). They are pure.
namespace trainyard::api {

/// This checks the policy of pulling, names of variables, amounts of resources, user and group, probes and hooks of the
/// container at `path`.
void check_container_fields(const Json& container, const std::string& path, const Refuse& refuse);
/// This checks the number of a user or a group.
void check_id(const std::optional<int64_t>& id, const std::string& path, const Refuse& refuse);
/// This checks the volumes of a pod's specification at `path`, and what its containers mount of them.
void check_volumes(const Json& spec, const std::string& path, const Refuse& refuse);

}  // namespace trainyard::api
