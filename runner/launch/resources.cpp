#include "launch/resources.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trainyard::launch {
namespace {
namespace fs = std::filesystem;

constexpr int kMaxRanks = 4096;

std::optional<std::string> text_of(const fs::path& path) {
  try {
    return std::string(trim(read_file(path, 4096)));
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// The container's limit, in cgroup v2 or v1.
std::optional<int> container_limit() {
  if (const auto v2 = text_of("/sys/fs/cgroup/cpu.max")) return cpus_of_limit(*v2);
  const auto quota = text_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
             period = text_of("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  return quota && period ? cpus_of_limit(*quota + " " + *period) : std::nullopt;
}

int cores_here() {
  const int allowed = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // glibc: the affinity's
  return std::min(allowed, container_limit().value_or(allowed));
}

int gpus_present() {
  int count = 0;
  std::error_code ignored;  // no /dev, no GPU
  for (const auto& entry : fs::directory_iterator("/dev", ignored)) {
    const std::string name = entry.path().filename();
    const std::string_view prefix = "nvidia";
    if (name.starts_with(prefix) && parse_int(std::string_view(name).substr(prefix.size()))) ++count;
  }
  return count;
}

}  // namespace

std::optional<int> cpus_of_limit(std::string_view cpu_max) {
  const auto parts = split(trim(cpu_max), ' ');
  if (parts.size() != 2) return std::nullopt;
  const auto quota = parse_int(parts[0]), period = parse_int(parts[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<int64_t>((*quota + *period - 1) / *period, 1, kMaxRanks));
}

int visible_gpus(const std::optional<std::string>& visible, int present) {
  if (!visible) return present;
  int count = 0;
  for (const std::string& one : split(*visible, ',')) {
    const std::string_view device = trim(one);
    const auto index = parse_int(device);
    const bool is_device =
        index ? *index >= 0 && *index < present : device.starts_with("GPU-") || device.starts_with("MIG-");
    if (!is_device) break;
    ++count;
  }
  return std::min(count, present);
}

Resources resources_here(const rendezvous::Environment& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  return {cores_here(),
          visible_gpus(visible == environment.end() ? std::nullopt : std::optional(visible->second), gpus_present())};
}

int ranks_of(std::string_view processes, const Resources& resources) {
  if (processes == "auto") return std::max(1, resources.gpus);
  if (processes == "cpu") return resources.cores;
  if (processes == "gpu" && resources.gpus > 0) return resources.gpus;
  if (processes == "gpu")
    throw InputError("--nproc-per-node gpu (PET_NPROC_PER_NODE): this node has no GPU; use cpu, auto or a number");
  const auto count = parse_int(processes);
  if (count && *count >= 1 && *count <= kMaxRanks) return static_cast<int>(*count);
  throw InputError(
      fmt::format("--nproc-per-node (PET_NPROC_PER_NODE) is '{}'; it must be auto, cpu, gpu, or a number from 1 to {}",
                  processes, kMaxRanks));
}

}  // namespace trainyard::launch
