#include "plan/hardware.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "ops/cpu_info.h"
#include "ops/matmul.h"
#include "tensor/device_memory.h"
#include "tensor/memory.h"

namespace trainyard::train {
namespace fs = std::filesystem;
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;
constexpr uint64_t kGiB = uint64_t{1} << 30;

struct Sheet {
  double float8, half, single;  ///< TFLOP/s, dense; 0: none
  double memory_gigabytes;      ///< a second
  double link_gigabytes;        ///< a second and direction: NVLink where it has one, else PCIe 4.0 x16
  double bus_gigabytes;         ///< a second and direction, to the host: PCIe 4.0 or 5.0 x16, NVLink-C2C of Grace
  uint64_t memory;              ///< decimal gigabytes, as sold
};

/// NVIDIA's data sheets (SXM where there is one), dense rates.
const std::map<std::string, Sheet>& sheets() {
  static const std::map<std::string, Sheet> all{
      {"a100", {0, 312, 19.5, 2039, 300, 32, 80}},      {"h100", {1979, 989, 67, 3350, 450, 64, 80}},
      {"h100-nvl", {1671, 835, 60, 3938, 300, 64, 94}}, {"h100-pcie", {1513, 756, 51, 2039, 300, 64, 80}},
      {"h200", {1979, 989, 67, 4800, 450, 64, 141}},    {"h200-nvl", {1671, 835, 60, 4800, 450, 64, 141}},
      {"l40s", {733, 362, 91.6, 864, 32, 32, 48}},      {"l4", {242, 121, 30.3, 300, 32, 32, 24}},
      {"b200", {4500, 2250, 75, 8000, 900, 64, 180}},   {"gb200", {5000, 2500, 80, 8000, 900, 450, 186}},
  };
  return all;
}

}  // namespace

Hardware accelerator(const std::string& name) {
  const auto found = sheets().find(name);
  if (found == sheets().end()) {
    std::vector<std::string> known{"cpu", "custom"};
    for (const auto& [each, sheet] : sheets()) known.push_back(each);
    const auto near = nearest(name, known);
    throw InputError(fmt::format("--device '{}' is not known{}; known are {}", name,
                                 near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(known, ", ")));
  }
  const Sheet& sheet = found->second;
  return {.name = name,
          .float8_flops = sheet.float8 * kTera,
          .half_flops = sheet.half * kTera,
          .float_flops = sheet.single * kTera,
          .memory_bandwidth = sheet.memory_gigabytes * kGiga,
          .memory = sheet.memory * 1'000'000'000,
          .fixed_memory = kGiB,
          .link_bandwidth = sheet.link_gigabytes * kGiga,
          .bus_bandwidth = sheet.bus_gigabytes * kGiga,
          .operation_seconds = 4e-6};
}

Hardware this_machine(int local_world, DType dtype) {
  const double peak = ops::measure_matmul_peak(DType::Float32);
  const bool is_multiplied = dtype == DType::BFloat16 && ops::multiplies_bfloat16();
  Hardware cpu{.name = "cpu",
               .is_cpu = true,
               .float8_flops = peak,
               .half_flops = is_multiplied ? ops::measure_matmul_peak(dtype) : peak,  // else converted to float32
               .float_flops = peak,
               .memory_bandwidth = 8 * kGiga,
               .memory = memory_limit() / static_cast<uint64_t>(std::max(local_world, 1)),
               .fixed_memory = resident_bytes(),
               .link_bandwidth = 3 * kGiga,
               .network_bandwidth = 1.25 * kGiga,
               .machine_memory = machine_memory() / static_cast<uint64_t>(std::max(local_world, 1)),
               .operation_seconds = 1e-6};
  cpu.matrix_fraction = 0.8;  // of what large square products were just measured to reach
  return cpu;
}

std::string sheet_of(const std::string& device_name) {
  std::string words = device_name;
  for (char& c : words) c = static_cast<char>(std::isalnum(static_cast<unsigned char>(c)) ? std::tolower(c) : ' ');
  const auto parts = split(words, ' ');
  const auto has = [&parts](const std::string& word) { return std::ranges::count(parts, word) > 0; };
  if (has("mig")) return "";  // a part of one
  std::string longest;
  for (const auto& [name, sheet] : sheets())
    if (name.size() > longest.size() && std::ranges::all_of(split(name, '-'), has)) longest = name;
  return longest;
}

Hardware this_device(Device device, int local_world) {
  const DeviceProperties seen = properties_of(device);
  const std::string sheet = sheet_of(seen.name);
  Hardware hardware = accelerator(sheet.empty() ? "l4" : sheet);
  hardware.name = seen.name;
  hardware.is_known = !sheet.empty();
  hardware.memory = seen.memory_bytes;
  const MemoryRoom room = room_on(device);
  const uint64_t own = process_bytes(device) + hardware.fixed_memory;
  hardware.others_hold = room.total - std::min<uint64_t>(room.free + own, room.total);
  hardware.machine_memory = machine_memory() / static_cast<uint64_t>(std::max(local_world, 1));
  hardware.host_memory = memory_limit() / static_cast<uint64_t>(std::max(local_world, 1));
  return hardware;
}

uint64_t control_group_limit(const fs::path& root, std::string_view membership) {
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  for (const std::string& line : split(membership, '\n')) {  // "4:memory:/jobs/a" in v1, "0::/jobs/a" in v2
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = split(std::string_view(line).substr(first + 1, second - first - 1), ',');
    const bool is_v1 = std::ranges::find(controllers, "memory") != controllers.end();
    if (!is_v1 && !line.starts_with("0::")) continue;
    // In a container the path may be the host's, of which only the top is to be seen: that is the container's own.
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      const fs::path file = is_v1 ? root / "memory" / group / "memory.limit_in_bytes" : root / group / "memory.max";
      uint64_t bytes = 0;  // "max" where there is none
      if (std::ifstream(file) >> bytes && bytes > 0) limit = std::min(limit, bytes);
      if (group.empty()) break;
    }
  }
  return limit;
}

uint64_t machine_memory() {
  struct sysinfo seen {};
  if (::sysinfo(&seen) != 0) return 0;
  return (uint64_t{seen.totalram} + seen.totalswap) * seen.mem_unit;
}

uint64_t memory_limit() {
  uint64_t limit = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  std::ifstream groups("/proc/self/cgroup");
  const std::string membership(std::istreambuf_iterator<char>(groups), {});
  limit = std::min(limit, control_group_limit("/sys/fs/cgroup", membership));
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
    limit = std::min<uint64_t>(limit, addresses.rlim_cur);
  return limit;
}

}  // namespace trainyard::train
