#include "train/device.h"

#include <fmt/format.h>

#include "base/error.h"
#include "tensor/device.h"

namespace trainyard::train {

void check_device(const config::Loaded& loaded) {
  if (loaded.config.device.kind != config::DeviceChoice::Cuda) {
    if (loaded.config.comm.backend != config::Backend::Nccl) return;
    throw InputError(
        fmt::format("{} is nccl, which moves the memory of GPUs, and training runs on the CPU only; use "
                    "auto, gloo or mpi",
                    loaded.subject("comm.backend")));
  }
  std::string why = "training does not run on devices yet";
  try {
    require_device({DeviceKind::Cuda, 0});
  } catch (const InputError& error) {
    why = error.what();
  }
  throw InputError(fmt::format("{} is cuda, but {}; use cpu", loaded.subject("device.kind"), why));
}

}  // namespace trainyard::train
