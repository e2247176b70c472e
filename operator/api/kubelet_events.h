#pragma once

#include <string>

#include "base/json.h"

namespace trainyard::api {

/// What a kubelet said last of a pod, if that was a warning: older ones may be over, as when it pulls the image by now.
/// What it says while the API server has not yet linked a new pod's objects to its node counts as nothing: it is over
/// at the kubelet's next attempt. `events`: an EventList of that pod.
[[nodiscard]] std::string last_warning(const Json& events);

}  // namespace trainyard::api
