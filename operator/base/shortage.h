#pragma once

#include <exception>
#include <optional>
#include <string>

namespace trainyard {

/// What is short, and what raises it, where an error says that this machine or a limit on this process is too small:
/// memory, processes and threads, descriptors, room in a file. None for any other error.
std::optional<std::string> shortage_in(const std::exception& error);

}  // namespace trainyard
