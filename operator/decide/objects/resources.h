#pragma once

#include "api/quantity.h"
#include "base/json.h"

namespace trainyard::decide {

/// Which limits count as requests where none is given for the resource.
enum class Limits {
  All,        ///< as the API server takes them
  Reference,  ///< as the reference counts for PodGroups: those of a container without any request; and beyond it those
              ///< of extended resources (GPUs), which cannot be asked for otherwise
};

/// What a pod of this template asks for, summed over its containers.
[[nodiscard]] api::Resources resources_of(const Json& pod_template, Limits limits);

}  // namespace trainyard::decide
