#pragma once

#include <exception>
#include <optional>
#include <string>

namespace trainyard {

/// Of an error that this machine, or a limit on this process, is too small for what is short, and what raises it:
/// memory, processes and threads, descriptors, room in a file. None: of any other.
std::optional<std::string> shortage_in(const std::exception& error);

}  // namespace trainyard
