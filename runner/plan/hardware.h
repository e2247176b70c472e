#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/device.h"
#include "tensor/dtype.h"

namespace trainyard::train {

/// What a plan assumes of the machines, per rank. Rates are those of data sheets; the fractions say what of them a well
/// tuned program reaches, and stand in the plan (docs/plan.md says where they come from).
struct Hardware {
  std::string name;
  bool is_known = true;               ///< its rates are a data sheet's or measured
  bool is_cpu = false;                ///< the CPU's kernels run, with their scratch memory
  double float8_flops = 0;            ///< dense, of 8 bits; 0: it has no units for them
  double half_flops = 0;              ///< dense bf16 and fp16
  double float_flops = 0;             ///< fp32
  double memory_bandwidth = 0;        ///< bytes/s
  uint64_t memory = 0;                ///< bytes; 0: not known
  uint64_t others_hold = 0;           ///< of the memory, other processes
  uint64_t fixed_memory = 0;          ///< what libraries and the driver take before the first tensor
  double link_bandwidth = 0;          ///< bytes/s and direction, to the other ranks of a node
  double network_bandwidth = 50e9;    ///< bytes/s and direction, to other nodes: 400 Gbit/s
  double bus_bandwidth = 64e9;        ///< bytes/s and direction, between the host and the device
  double host_bandwidth = 75e9;       ///< bytes/s of the host's memory a rank: 16 channels of DDR5 for 8 devices
  uint64_t host_memory = 0;           ///< bytes a rank, where a device computes; 0: not known
  uint64_t machine_memory = 0;        ///< bytes a rank of the host's memory and swap, whatever the limits; 0: not known
  double operation_seconds = 0;       ///< least time of an operation
  double collective_seconds = 20e-6;  ///< of a collective beside its bytes
  double matrix_fraction = 0.7, memory_fraction = 0.8, link_fraction = 0.8;
};

/// "h100", "h200", "a100", "l40s", "l4", "b200", "gb200". Throws InputError with the nearest name and the list.
Hardware accelerator(const std::string& name);

/// This machine, one rank of `local_world`, for a run that computes in `dtype`: a tenth of a second of matrix products
/// tells what it reaches, and as long again in bfloat16 where that is the dtype and has instructions of its own.
Hardware this_machine(int local_world, DType dtype);

/// The name here of a device that calls itself so: "h100-pcie" of "NVIDIA H100 PCIe"; "" where no sheet is known.
std::string sheet_of(const std::string& device_name);

/// A device of this machine for one rank of `local_world`: the rates of the data sheet that its name names, else the
/// least of all, its own memory, and the rank's part of the host's.
Hardware this_device(Device device, int local_world);

/// The least memory that the control groups of `membership` (as /proc/self/cgroup says it, in cgroup v1 or v2) and the
/// groups around them allow, read below `root`; the highest number where none limits it.
uint64_t control_group_limit(const std::filesystem::path& root, std::string_view membership);

/// What this process may hold: the least of its control group's limit, that on its addresses (ulimit -v) and the
/// machine's memory.
uint64_t memory_limit();

/// All that this machine has, swap included.
uint64_t machine_memory();

/// Where the ranks are.
struct Placement {
  int world = 1;
  int ranks_per_node = 1;
};

}  // namespace trainyard::train
