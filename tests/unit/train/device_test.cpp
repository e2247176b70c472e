#include "train/device.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "config/load.h"
#include "tensor/device.h"

namespace trainyard::train {

TEST_CASE("device.kind: cuda is refused with its place and what is missing, and cpu and auto never are", "[train]") {
  CHECK_NOTHROW(check_device(config::load({"--device.kind=cpu"}, {})));
  CHECK_NOTHROW(check_device(config::load({"--device.kind=auto"}, {})));
  CHECK_THROWS_WITH(
      check_device(config::load({"--comm.backend=nccl"}, {})),
      "--comm.backend is nccl, which moves the memory of GPUs, and training runs on the CPU only; use auto, "
      "gloo or mpi");
  std::string missing = "training does not run on devices yet";
  try {
    require_device({DeviceKind::Cuda, 0});
  } catch (const InputError& error) {
    missing = error.what();
  }
  CHECK_THROWS_AS(check_device(config::load({"--device=cuda"}, {})), InputError);
  CHECK_THROWS_WITH(check_device(config::load({"--device=cuda"}, {})), Catch::StartsWith("--device"));
  CHECK_THROWS_WITH(check_device(config::load({"--device=cuda"}, {})),
                    Catch::EndsWith(" is cuda, but " + missing + "; use cpu"));
}

}  // namespace trainyard::train
