#include "tensor/device.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "support/devices.h"
#include "support/support.h"
#include "tensor/tensor.h"

namespace trainyard {
namespace {

constexpr Device kCuda{DeviceKind::Cuda, 0};

}  // namespace

TEST_CASE("Device: the CPU is always there, has no streams, and is waited for by nobody", "[tensor]") {
  CHECK(to_string(Device{}) == "cpu");
  CHECK(to_string({DeviceKind::Cuda, 3}) == "cuda:3");
  CHECK_NOTHROW(require_device({}));
  CHECK(current_stream({}) == kNoStream);
  CHECK_NOTHROW(synchronize({}));
  CHECK_THROWS_WITH(Stream(Device{}), Catch::Contains("the CPU has no streams"));
}

TEST_CASE("Device: without one, whatever asks for it says why", "[tensor]") {
  if (cuda_devices() > 0) return test::skip("there is a CUDA device");
  CHECK_THROWS_AS(require_device(kCuda), InputError);
  CHECK_THROWS_AS(Stream(kCuda), InputError);
  CHECK_THROWS_AS(Event(kCuda), InputError);
  CHECK_THROWS_AS(synchronize(kCuda), InputError);
  CHECK_THROWS_AS(properties_of(kCuda), InputError);
  CHECK_THROWS_AS(Tensor::empty({2}, DType::Float32, kCuda), InputError);
  Tensor pinned = Tensor::pinned({4}, DType::Float32);  // plain memory then
  pinned.values<float>()[3] = 1;
  CHECK(pinned.device() == Device{});
}

TEST_CASE("Device: a dry run holds tensors of a device that is not there", "[tensor]") {
  test::Elsewhere run;
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope counted(ledger);
  const DryRunScope scope(run);
  Tensor there = Tensor::zeros({1000}, DType::Float32, {DeviceKind::Cuda, 7});
  CHECK(there.device() == Device{DeviceKind::Cuda, 7});
  CHECK(ledger->held_bytes() == 4000);
  const Tensor here = Tensor::empty({1000}, DType::Float32);
  CHECK_NOTHROW(copy(here, there));
  there.storage()->release();
  CHECK(ledger->held_bytes() == 4000);
}

}  // namespace trainyard
