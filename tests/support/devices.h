#pragma once

#include <vector>

#include "tensor/device.h"
#include "tensor/dry_run.h"

namespace trainyard::test {

/// What a test of both runs on: the CPU, and a CUDA device where this build and the machine have one.
inline std::vector<Device> devices() {
  std::vector<Device> all{{}};
  if (cuda_devices() > 0) all.push_back({DeviceKind::Cuda, 0});
  return all;
}

/// A dry run of a device, which need not be there.
class Elsewhere final : public DryRun {
 public:
  void operation(const OperationCost&) override {}
  [[nodiscard]] bool on_cpu() const override { return false; }
  [[nodiscard]] size_t device_memory() const override { return 0; }
};

}  // namespace trainyard::test
