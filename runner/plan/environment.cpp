#include "plan/environment.h"

#include <fmt/format.h>
#include <sched.h>

#include "base/host_name.h"
#include "comm/nccl.h"
#include "ops/cpu_info.h"
#include "ops/cuda_info.h"
#include "tensor/device.h"

namespace trainyard::train {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

/// The cores that this process may use: taskset and cpusets count, a quota of CPU time does not.
int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

std::vector<metrics::TableRow> environment_rows() {
  const int count = cores();
  std::vector<metrics::TableRow> rows{{"program", fmt::format("trainyard {}, {}", TRAINYARD_VERSION, kCompiler)},
                                      {"kernels", ops::describe_cpu_kernels()},
                                      {"cuda", describe_cuda()}};
  if (const std::string cudnn = ops::describe_cudnn(); !cudnn.empty()) rows.push_back({"cudnn", cudnn});
  if (const std::string nccl = comm::describe_nccl(); !nccl.empty()) rows.push_back({"nccl", nccl});
  rows.push_back({"host", fmt::format("{}, {} {}", host_name(), count, count == 1 ? "core" : "cores")});
  return rows;
}

}  // namespace trainyard::train
