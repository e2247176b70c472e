#pragma once

#include <string>

namespace trainyard {

/// The name of this machine, or of the pod; "unknown host" where the system does not tell it.
std::string host_name();

}  // namespace trainyard
