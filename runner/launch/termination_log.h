#pragma once

#include <string>
#include <string_view>

namespace trainyard::launch {

/// Writes the last error, as one line, to where Kubernetes looks for it: the file TRAINYARD_TERMINATION_LOG, else
/// /dev/termination-log. Where neither is there, or it cannot be written, nothing happens: the error is in the log too.
void write_termination_log(std::string_view error);

/// `error` as one line of at most 2 KiB.
std::string one_line(std::string_view error);

}  // namespace trainyard::launch
