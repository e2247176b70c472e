#include "assemble/device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::train {

using config::Backend;
using config::DeviceChoice;

DeviceKind device_kind_of(DeviceChoice choice) {
  const bool is_cuda = choice == DeviceChoice::Cuda || (choice == DeviceChoice::Auto && cuda_devices() > 0);
  return is_cuda ? DeviceKind::Cuda : DeviceKind::Cpu;
}

DeviceKind device_kind_of(const config::Loaded& loaded) {
  const Backend backend = loaded.config.comm.backend;
  if (backend == Backend::Nccl) return DeviceKind::Cuda;
  const bool moves_host_memory = backend == Backend::Gloo || backend == Backend::Mpi;
  return moves_host_memory ? DeviceKind::Cpu : device_kind_of(loaded.config.device.kind);
}

bool takes_what_is_there(const config::Loaded& loaded) {
  const Backend backend = loaded.config.comm.backend;
  const bool is_named = backend == Backend::Nccl || backend == Backend::Gloo || backend == Backend::Mpi;
  return loaded.config.device.kind == DeviceChoice::Auto && !is_named;
}

void check_device(const config::Loaded& loaded) {
  const bool is_by_backend = loaded.config.comm.backend == Backend::Nccl;
  if (!is_by_backend && loaded.config.device.kind != DeviceChoice::Cuda) return;
  try {
    require_device({DeviceKind::Cuda, 0});
  } catch (const InputError& error) {
    throw InputError(is_by_backend
                         ? fmt::format("{} is nccl, which moves the memory of GPUs, but {}; use auto, gloo or mpi",
                                       loaded.subject("comm.backend"), error.what())
                         : fmt::format("{} is cuda, but {}; use cpu", loaded.subject("device.kind"), error.what()));
  }
}

}  // namespace trainyard::train
