// What a device has done, by the stand-ins of CUDA and CUPTI.
#include "tensor/device_trace.h"

#include <cuda_runtime.h>

#include <catch2/catch.hpp>

#include <algorithm>

#include "base/error.h"
#include "tensor/cuda/activities.h"
#include "tensor/tensor.h"

namespace trainyard {
namespace {

constexpr Device kFirst{DeviceKind::Cuda, 0}, kSecond{DeviceKind::Cuda, 1};

void work_on(Device device, const Stream& stream) {
  const StreamScope scope(stream);
  const Tensor host = Tensor::zeros({10}, DType::Float32);
  Tensor there = Tensor::empty({10}, DType::Float32, device);
  copy(host, there);
  static_cast<void>(host_cuda::submit(static_cast<cudaStream_t>(stream.id().handle), [] { return cudaSuccess; }));
}

std::vector<std::string> names_of(const DeviceTrace::Seen& seen) {
  std::vector<std::string> names;
  for (const DeviceActivity& each : seen.activities) names.push_back(each.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("device trace: what a device does is seen from begin to end, and not before or of another", "[tensor]") {
  host_cuda::set_devices(2);
  const Stream stream(kFirst), other(kSecond);
  work_on(kFirst, stream);
  const auto before = DeviceActivity::Clock::now();
  {
    DeviceTrace trace(kFirst);
    work_on(kFirst, stream);
    work_on(kSecond, other);
    const DeviceTrace::Seen seen = trace.read();
    const auto after = DeviceActivity::Clock::now();
    CHECK(names_of(seen) == Names{"copy host to device", "host::kernel"});
    CHECK(seen.dropped == 0);
    CHECK(seen.activities[0].bytes == 40);
    CHECK(seen.activities[0].stream == seen.activities[1].stream);
    for (const DeviceActivity& each : seen.activities) {
      constexpr std::chrono::milliseconds kBetweenClocks{1};
      CHECK(each.begin >= before - kBetweenClocks);
      CHECK(each.end >= each.begin);
      CHECK(each.end <= after + kBetweenClocks);
    }
    CHECK(names_of(DeviceTrace(kFirst).read()).empty());  // one that begins now
    CHECK(names_of(trace.read()) == Names{"copy host to device", "host::kernel"});
  }
  work_on(kFirst, stream);
  CHECK(names_of(DeviceTrace(kFirst).read()).empty());
  host_cuda::set_devices(1);
}

TEST_CASE("device trace: where somebody else looks on it says so, and works when they are gone", "[tensor]") {
  host_cuda::fail_next("cuptiActivityEnable", cudaErrorUnknown);
  CHECK_THROWS_WITH(DeviceTrace(kFirst),
                    "what a GPU does is seen by CUPTI, but cuptiActivityEnable says: another client is there");
  const Stream stream(kFirst);
  DeviceTrace trace(kFirst);
  work_on(kFirst, stream);
  CHECK(names_of(trace.read()).size() == 2);
}

TEST_CASE("device trace: a kernel's name is without its parameters and our namespaces", "[tensor]") {
  const auto [mangled, name] = GENERATE(table<const char*, std::string>({
      {"_ZN9trainyard3ops4cuda12_GLOBAL__N_112parts_kernelINS2_6SquareENS_8BFloat16EEEviPKNS2_5EntryIT0_EET_Pd",
       "parts_kernel<Square, BFloat16>"},
      {"_ZN9trainyard3ops4cuda12_GLOBAL__N_112total_kernelElPKdPd", "total_kernel"},
      {"_ZN9trainyard3ops4cuda40_GLOBAL__N__beb6e2b7_8_adamw_cu_3e6dbb6912adamw_kernelINS_8BFloat16EEEviPKNS2_5EntryIT_"
       "EEPKf",
       "adamw_kernel<BFloat16>"},  // as nvcc writes it
      {"nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT", "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT"},
      {nullptr, "kernel"},
  }));
  CHECK(cuda::kernel_name(mangled) == name);
}

}  // namespace trainyard
