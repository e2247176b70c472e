#include "assemble/device.h"

#include <catch2/catch.hpp>

#include <cstdlib>

#include "assemble/threads.h"
#include "base/error.h"

namespace trainyard::train {

namespace {

std::string missing() {
  try {
    require_device({DeviceKind::Cuda, 0});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("device.kind: cuda is refused with its place and what is missing, and cpu and auto never are", "[train]") {
  CHECK_NOTHROW(check_device(config::load({"--device.kind=cpu"}, {})));
  CHECK_NOTHROW(check_device(config::load({"--device.kind=auto"}, {})));
  if (missing().empty()) return;
  CHECK_THROWS_AS(check_device(config::load({"--device=cuda"}, {})), InputError);
  CHECK_THROWS_WITH(check_device(config::load({"--device=cuda"}, {})), Catch::StartsWith("--device"));
  CHECK_THROWS_WITH(check_device(config::load({"--device=cuda"}, {})),
                    Catch::EndsWith(" is cuda, but " + missing() + "; use cpu"));
  CHECK_THROWS_WITH(
      check_device(config::load({"--comm.backend=nccl"}, {})),
      "--comm.backend is nccl, which moves the memory of GPUs, but " + missing() + "; use auto, gloo or mpi");
}

TEST_CASE("device.kind: auto is the GPU where there is one, and comm.backend may ask for the one or the other",
          "[train]") {
  const DeviceKind here = cuda_devices() > 0 ? DeviceKind::Cuda : DeviceKind::Cpu;
  const auto kind_of = [](const std::vector<std::string>& flags) { return device_kind_of(config::load(flags, {})); };
  CHECK(kind_of({}) == here);
  CHECK(kind_of({"--device=cpu"}) == DeviceKind::Cpu);
  CHECK(kind_of({"--device=cuda"}) == DeviceKind::Cuda);
  CHECK(kind_of({"--comm.backend=gloo"}) == DeviceKind::Cpu);
  CHECK(kind_of({"--comm.backend=nccl"}) == DeviceKind::Cuda);
}

TEST_CASE("device.threads: its own number, OMP_NUM_THREADS, or the ranks' share of the pod's CPUs", "[train]") {
  const char* const omp = std::getenv("OMP_NUM_THREADS");
  const std::string before = omp ? omp : "";
  ::unsetenv("OMP_NUM_THREADS");
  ::setenv("TRAINYARD_CPUS", "1", 1);
  CHECK(threads_of({}, 1) == 1);
  CHECK(threads_of({}, 8) == 1);
  ::setenv("OMP_NUM_THREADS", "5", 1);
  CHECK(threads_of({}, 8) == 5);
  CHECK(threads_of({.threads = 3}, 8) == 3);
  ::unsetenv("TRAINYARD_CPUS");
  omp ? ::setenv("OMP_NUM_THREADS", before.c_str(), 1) : ::unsetenv("OMP_NUM_THREADS");
}

}  // namespace trainyard::train
