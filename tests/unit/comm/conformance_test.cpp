#include <catch2/catch.hpp>

#include "comm/in_process.h"
#include "comm/settings.h"
#include "conformance.h"
#include "rendezvous/memory_store.h"
#include "support/ranks.h"

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

}  // namespace
}  // namespace trainyard::comm
