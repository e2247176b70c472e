#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace trainyard::local {

/// Those that it started and those that came to it because their parents ended.
[[nodiscard]] std::vector<pid_t> children_of_this_process();
/// A variable of the environment that a process was started with; "" where it has none or is no longer there.
[[nodiscard]] std::string variable_of(pid_t pid, const std::string& name);

}  // namespace trainyard::local
