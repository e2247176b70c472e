#include <catch2/catch.hpp>

#include <algorithm>

#include "comm/in_process.h"
#include "comm/settings.h"
#include "conformance.h"
#include "rendezvous/memory_store.h"
#include "support/ranks.h"
#include "support/support.h"

namespace trainyard::comm {
namespace {

using namespace std::chrono_literals;

/// Every rank's problems, one after the other.
std::vector<std::string> joined(const std::vector<std::vector<std::string>>& ranks) {
  std::vector<std::string> all;
  for (const auto& problems : ranks) all.insert(all.end(), problems.begin(), problems.end());
  return all;
}

std::vector<std::string> check_gloo(int world, bool shared_memory) {
  rendezvous::MemoryStore store;
  return joined(test::run_threads(world, [&](int rank) {
    const auto comm = connect({.rank = rank,
                               .world = world,
                               .host = "pod-" + std::to_string(rank),
                               .store = &store,
                               .timeout = 60s,
                               .address = "127.0.0.1",
                               .shared_memory = shared_memory});
    auto problems = conformance::check_all(*comm, {.rank_order = true});
    comm->close(std::chrono::steady_clock::now() + 30s);
    return problems;
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
  rendezvous::MemoryStore store;
  const auto problems = joined(test::run_threads(world, [&](int rank) {
    const Device device{DeviceKind::Cuda, rank};
    const auto comm = connect({.device = device,
                               .rank = rank,
                               .world = world,
                               .host = "pod-" + std::to_string(rank),
                               .store = &store,
                               .timeout = 60s,
                               .address = "127.0.0.1"});
    auto found = conformance::check_all(*comm, {.rank_order = false, .device = device});
    comm->close(std::chrono::steady_clock::now() + 30s);
    return found;
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
