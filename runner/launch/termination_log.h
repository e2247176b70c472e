#pragma once

#include <string>
#include <string_view>

namespace trainyard::launch {

/// Writes the last error, or word of a run, as one line, to where Kubernetes looks: the file TRAINYARD_TERMINATION_LOG,
/// else /dev/termination-log. Where neither is there, or cannot be written, nothing happens: an error is in the log too.
void write_termination_log(std::string_view error);

/// `error` as one line of at most 2 KiB.
std::string one_line(std::string_view error);

}  // namespace trainyard::launch
