#include "base/cpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trainyard {
namespace {

constexpr int kMost = 4096;

std::optional<std::string> text_of(const std::filesystem::path& path) {
  try {
    return std::string(trim(read_file(path, 4096)));
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// The container's limit, in cgroup v2 or v1.
int container_limit() {
  if (const auto v2 = text_of("/sys/fs/cgroup/cpu.max")) return cpus_of_limit(*v2).value_or(kMost);
  const auto quota = text_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
             period = text_of("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  return quota && period ? cpus_of_limit(*quota + " " + *period).value_or(kMost) : kMost;
}

int number_of(std::string_view granted) {
  const auto count = parse_int(granted);
  if (!count || *count < 0)
    throw InputError(fmt::format("TRAINYARD_CPUS is '{}'; it must be a whole number, or 0 for all", granted));
  return *count == 0 ? kMost : static_cast<int>(std::min<int64_t>(*count, kMost));
}

}  // namespace

std::optional<int> cpus_of_limit(std::string_view cpu_max) {
  const auto parts = split(trim(cpu_max), ' ');
  if (parts.size() != 2) return std::nullopt;
  const auto quota = parse_int(parts[0]), period = parse_int(parts[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<int64_t>((*quota + *period - 1) / *period, 1, kMost));
}

int cpus_here(std::optional<std::string_view> granted) {
  const int allowed = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // glibc: the affinity's
  return std::min({allowed, container_limit(), granted ? number_of(*granted) : kMost});
}

}  // namespace trainyard
