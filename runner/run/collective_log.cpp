#include "run/collective_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace trainyard::train {
namespace {

/// "all-gather", as people grep for it.
std::string hyphenated(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace

CollectiveLog::CollectiveLog(comm::Communicator& world) : world_(world) {
  world.on_collective([rank = world.rank()](const comm::CollectiveRecord& record) {
    const double milliseconds = std::chrono::duration<double, std::milli>(record.ended - record.begun).count();
    spdlog::info("rank {}: {} {}: {} bytes in {:.3f} ms", rank, hyphenated(record.name), record.label, record.bytes,
                 milliseconds);
  });
}

}  // namespace trainyard::train
