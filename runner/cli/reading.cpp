#include "cli/reading.h"

#include <spdlog/spdlog.h>

namespace trainyard::cli {

void log_reading(const config::Loaded& loaded) {
  for (const std::string& line : loaded.understood) spdlog::info("understood as {}", line);
  for (const std::string& note : loaded.notes) spdlog::warn(note);
}

}  // namespace trainyard::cli
