#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trainyard::api {

/// The known field of the API that `name` is a misspelling of ("comand", "nodeselector", "image_pull_policy"). None where
/// it reads like a field of its own, as a newer Kubernetes may have one: "restartPolicyRules" beside "restartPolicy",
/// "schedulingGroup" beside "schedulingGates".
[[nodiscard]] std::optional<std::string> meant_field(std::string_view name, std::span<const std::string> known);

}  // namespace trainyard::api
