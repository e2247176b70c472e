#include "launch/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/cpus.h"
#include "base/error.h"
#include "base/text.h"

namespace trainyard::launch {
namespace {
namespace fs = std::filesystem;

constexpr int kMaxRanks = 4096;

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
  const auto value_of = [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  return {cpus_here(value_of("TRAINYARD_CPUS")), visible_gpus(value_of("CUDA_VISIBLE_DEVICES"), gpus_present())};
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
