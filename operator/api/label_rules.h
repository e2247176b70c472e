#pragma once

#include <string>
#include <string_view>

// These are the forms of Kubernetes' names (apimachinery's util/validation). Each function says in Kubernetes' words how a
// text misses its form, and "" where it has it. All are pure.
namespace trainyard::api {

/// The form is that of a label of DNS, which a volume's or a container's name has.
[[nodiscard]] std::string label_defect(std::string_view name);
/// The form is that of a label's or an annotation's key, or of a resource's name: "name" or "example.com/name".
[[nodiscard]] std::string qualified_name_defect(std::string_view name);
/// The form is that of a label's value.
[[nodiscard]] std::string label_value_defect(std::string_view value);

}  // namespace trainyard::api
