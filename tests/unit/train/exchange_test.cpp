#include "train/exchange.h"

#include <catch2/catch.hpp>
#include <chrono>

#include "rendezvous/memory_store.h"
#include "support/ranks.h"

namespace trainyard::train {
namespace {
using std::chrono::milliseconds, std::chrono::minutes;

/// What a rank that throws ends with; "" where it does not.
struct Ended {
  std::string text;
  bool prints = false;
  bool operator==(const Ended&) const = default;
};

Ended end_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const VerdictError& error) {
    return {error.what(), error.is_printed_here()};
  }
  return {};
}

/// By rank, where the ranks of `failing` fail.
std::vector<Ended> ends_of(int world, const std::vector<int>& failing) {
  return test::run_ranks(world, [&](comm::Communicator& comm) {
    return end_of([&] {
      on_every_rank(comm, [&] {
        if (std::ranges::find(failing, comm.rank()) != failing.end()) throw InputError("no such file");
      });
    });
  });
}

}  // namespace

TEST_CASE("exchange: an error of every rank is printed by rank 0, one of a few by the first of them, which is named",
          "[train]") {
  const std::string text = "no such file";
  CHECK(ends_of(1, {0}) == std::vector<Ended>{{text, true}});
  CHECK(ends_of(3, {0, 1, 2}) == std::vector<Ended>{{text, true}, {text, false}, {text, false}});
  const std::string named = "rank 1: no such file";
  CHECK(ends_of(3, {1, 2}) == std::vector<Ended>{{named, false}, {named, true}, {named, false}});
  CHECK(ends_of(3, {}) == std::vector<Ended>(3));
}

TEST_CASE("exchange: what may take a rank long is waited for in the store, and who does not come is named", "[train]") {
  rendezvous::MemoryStore store;
  const auto read = [&](comm::Communicator& comm, std::chrono::milliseconds patience) {
    const World world{.comm = comm, .store = store};
    return made_on_every_rank(world, "reading the data", patience, [&] { return comm.rank(); });
  };
  CHECK(test::run_ranks(3, [&](comm::Communicator& comm) { return read(comm, minutes(1)); }) == std::vector{0, 1, 2});
  const auto first_alone = [&](comm::Communicator& comm) {
    if (comm.rank() == 0) read(comm, milliseconds(50));
  };
  CHECK_THROWS_WITH(test::run_ranks(3, first_alone),
                    "reading the data: rank 1, 2 did not come within the time-out of 50 ms; see that pod's log, or "
                    "raise rendezvous.timeout");
}

}  // namespace trainyard::train
