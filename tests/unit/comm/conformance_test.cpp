#include <catch2/catch.hpp>

#include <algorithm>

#include "conformance.h"
#include "support/connected_ranks.h"
#include "support/support.h"

namespace trainyard::comm {
namespace {

/// Every rank's problems, one after the other.
std::vector<std::string> joined(const std::vector<std::vector<std::string>>& ranks) {
  std::vector<std::string> all;
  for (const auto& problems : ranks) all.insert(all.end(), problems.begin(), problems.end());
  return all;
}

std::vector<std::string> check_gloo(int world, bool shared_memory) {
  return joined(test::run_connected(world, {.shared_memory = shared_memory}, [](Communicator& comm, Device) {
    return conformance::check_all(comm, {.rank_order = true});
  }));
}

TEST_CASE("in_process: every collective gives what its formula says", "[comm]") {
  const int world = GENERATE(1, 2, 3, 4, 8);
  CAPTURE(world);
  CHECK(joined(test::run_ranks(world, [](Communicator& comm) { return conformance::check_all(comm, {}); })).empty());
}

TEST_CASE("gloo over shared memory: every collective gives what its formula says", "[comm]") {
  const int world = GENERATE(1, 2, 3, 4, 8);
  CAPTURE(world);
  CHECK(check_gloo(world, true) == std::vector<std::string>{});
}

TEST_CASE("gloo over TCP: every collective gives what its formula says", "[comm]") {
  const int world = GENERATE(2, 3, 4, 8);
  CAPTURE(world);
  CHECK(check_gloo(world, false) == std::vector<std::string>{});
}

// One process has one default stream a device, so ranks as threads need a device each.
TEST_CASE("nccl: every collective gives what its formula says on real devices", "[comm]") {
  const int world = std::min(cuda_devices(), 8);
  if (world < 2) return test::skip("NCCL joins devices, of which two are needed here");
  const auto problems =
      joined(test::run_connected(world, {.device = {DeviceKind::Cuda}}, [](Communicator& comm, Device device) {
        return conformance::check_all(comm, {.rank_order = false, .device = device});
      }));
  CHECK(problems == std::vector<std::string>{});
}

TEST_CASE("a rank alone: every collective gives what its formula says on a real device", "[comm]") {
  if (cuda_devices() == 0) return test::skip("no device");
  const auto alone = connect({.device = {DeviceKind::Cuda, 0}});
  CHECK(conformance::check_all(*alone, {.device = {DeviceKind::Cuda, 0}}) == std::vector<std::string>{});
}

}  // namespace
}  // namespace trainyard::comm
