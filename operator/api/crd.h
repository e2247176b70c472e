#pragma once

#include "base/json.h"

namespace trainyard::api {

/// manifests/crd/pytorchjobs.yaml as it was when this program was built. Any thread.
[[nodiscard]] const Json& crd();
/// The structural schema of a PyTorchJob in it.
[[nodiscard]] const Json& job_schema();

}  // namespace trainyard::api
