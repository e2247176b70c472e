#include "assemble/threads.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/cpus.h"
#include "base/text.h"

namespace trainyard::train {
namespace {

constexpr int64_t kMostThreads = 4096;  // as device.threads

}  // namespace

int threads_of(const config::DeviceSection& device, int local_world) {
  if (device.threads > 0) return static_cast<int>(device.threads);
  // Who started the ranks may know of others on this host: torchrun, or the pods of a job on one machine.
  const char* const told = std::getenv("OMP_NUM_THREADS");
  if (const auto count = told ? parse_int(told) : std::nullopt; count && *count > 0)
    return static_cast<int>(std::min<int64_t>(*count, kMostThreads));
  return std::max(1, threads_of_node() / local_world);
}

int threads_of_node() {
  const char* const granted = std::getenv("TRAINYARD_CPUS");
  return cpus_here(granted ? std::optional<std::string_view>(granted) : std::nullopt);
}

}  // namespace trainyard::train
