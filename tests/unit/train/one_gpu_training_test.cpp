#include <catch2/catch.hpp>

#include "small_run.h"
#include "support/one_gpu.h"
#include "support/support.h"
#include "tiny_model.h"

namespace trainyard::train {
namespace {

constexpr BatchShape kRowEach{.rows = 1, .tokens = 5};

}  // namespace

TEST_CASE("nccl: two processes on one GPU, by NCCL_HOSTID, train as two ranks on the CPU do", "[train]") {
  if (cuda_devices() == 0) return test::skip("no device");
  CHECK(test::run_on_one_gpu("one GPU: a rank that trains") == std::vector<int>{0, 0});
}

TEST_CASE("one GPU: a rank that trains", "[.rank]") {
  config::Config config;
  const test::Ran seen = test::on_one_gpu({}, [&](comm::Communicator& comm, Device device) {
    return test::run_rank(comm, config, test::tiny_model(), kRowEach, 3, device);
  });
  config.device.kind = config::DeviceChoice::Cpu;
  const test::Ran expected = test::run_small(config, test::tiny_model(), 2, kRowEach, 3);
  REQUIRE(seen.losses.size() == 3);
  for (size_t step = 0; step < 3; ++step) {
    CHECK(seen.losses[step] == Approx(expected.losses[step]).epsilon(1e-5));
    CHECK(seen.norms[step] == Approx(expected.norms[step]).epsilon(2e-4));
  }
}

}  // namespace trainyard::train
