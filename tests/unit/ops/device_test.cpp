#include <catch2/catch.hpp>

#include "ops/add.h"
#include "ops_support.h"
#include "support/devices.h"
#include "support/support.h"

namespace trainyard {
using namespace test;
namespace {

constexpr Device kCuda{DeviceKind::Cuda, 0};

}  // namespace

TEST_CASE("ops: a dry run computes nothing for a device that is not there", "[ops]") {
  Elsewhere run;
  const DryRunScope scope(run);
  const Tensor a = Tensor::empty({4}, DType::Float32, kCuda);
  Tensor out = Tensor::empty({4}, DType::Float32, kCuda);
  CHECK_NOTHROW(ops::add(a, a, out));
}

TEST_CASE("ops: tensors of two devices are refused", "[ops]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const Tensor here = Tensor::zeros({2, 4}, DType::Float32), there = on_device(here, kCuda);
  Tensor out = Tensor::empty({2, 4}, DType::Float32, kCuda);
  CHECK_THROWS_WITH(ops::add(there, here, out), "add: one tensor is on cuda:0, another on cpu");
}

}  // namespace trainyard
