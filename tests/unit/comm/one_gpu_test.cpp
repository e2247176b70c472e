#include <catch2/catch.hpp>

#include "conformance.h"
#include "support/one_gpu.h"
#include "support/support.h"

namespace trainyard::comm {

TEST_CASE("nccl: two processes on one GPU, by NCCL_HOSTID, and every collective gives what its formula says",
          "[comm]") {
  if (cuda_devices() == 0) return test::skip("no device");
  CHECK(test::run_on_one_gpu("one GPU: a rank with every collective") == std::vector<int>{0, 0});
  CHECK(test::run_on_one_gpu("one GPU: a rank with every collective with registered buffers") ==
        std::vector<int>{0, 0});
}

namespace {

std::vector<std::string> problems(const Settings& settings) {
  return test::on_one_gpu(settings, [](Communicator& comm, Device device) {
    const MemoryKindScope scope(MemoryKind::Gathered);
    return conformance::check_all(comm, {.rank_order = false, .device = device});
  });
}

}  // namespace

TEST_CASE("one GPU: a rank with every collective", "[.rank]") {
  CHECK(problems({}) == std::vector<std::string>{});
}

TEST_CASE("one GPU: a rank with every collective with registered buffers", "[.rank]") {
  CHECK(problems({.user_buffers = true}) == std::vector<std::string>{});
}

}  // namespace trainyard::comm
