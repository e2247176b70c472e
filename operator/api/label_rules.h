#pragma once

#include <string>
#include <string_view>

// The forms that Kubernetes' names have (apimachinery's util/validation), and its words where one is missed. Pure.
namespace trainyard::api {

/// Of a label of DNS, such as a volume's or a container's name. "" where `name` is one.
[[nodiscard]] std::string label_defect(std::string_view name);
/// Of the key of a label or an annotation, or a resource's name: "name" or "example.com/name". "" where it is one.
[[nodiscard]] std::string qualified_name_defect(std::string_view name);
/// Of a label's value. "" where it is one.
[[nodiscard]] std::string label_value_defect(std::string_view value);

}  // namespace trainyard::api
