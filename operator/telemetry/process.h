#pragma once

#include <cstddef>

namespace trainyard::telemetry {

/// What this process uses, as the system counts it.
struct ProcessUse {
  double resident_bytes = 0;
  double cpu_seconds = 0;
  size_t open_files = 0;
};
[[nodiscard]] ProcessUse process_use();

}  // namespace trainyard::telemetry
