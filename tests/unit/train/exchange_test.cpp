#include "assemble/exchange.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

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

TEST_CASE(
    "exchange: what may take a rank long is waited for in the store, who does not come is named, and who "
    "says so whoever else is there",
    "[train]") {
  const auto read = [](rendezvous::Store& store, comm::Communicator& comm, std::chrono::milliseconds patience,
                       const std::function<int()>& make) {
    return made_on_every_rank({.comm = comm, .store = store}, "reading the data", patience,
                              [&](const AskedToStop&) { return make(); });
  };
  rendezvous::MemoryStore together, apart, failing, alike;
  const auto own_rank = [&](comm::Communicator& comm) {
    return read(together, comm, minutes(1), [&] { return comm.rank(); });
  };
  CHECK(test::run_ranks(3, own_rank) == std::vector{0, 1, 2});

  const auto first_alone = [&](comm::Communicator& comm) {
    if (comm.rank() == 0) read(apart, comm, milliseconds(50), [] { return 0; });
  };
  CHECK_THROWS_WITH(test::run_ranks(3, first_alone),
                    "reading the data: rank 1, 2 did not come within 50 ms; see their logs, or raise "
                    "rendezvous.timeout");

  const auto fail = []() -> int { throw InputError("line 7 is no JSON"); };
  const auto first_fails = [&](comm::Communicator& comm) {
    if (comm.rank() == 0) read(failing, comm, minutes(1), fail);
  };
  CHECK_THROWS_AS(test::run_ranks(3, first_fails), InputError);
  const auto all_fail = [&](comm::Communicator& comm) { return end_of([&] { read(alike, comm, minutes(1), fail); }); };
  const std::string text = "line 7 is no JSON";
  CHECK(test::run_ranks(3, all_fail) == std::vector<Ended>{{text, true}, {text, false}, {text, false}});
}

TEST_CASE("exchange: who is asked to stop while others read or wait ends all of them in good order", "[train]") {
  rendezvous::MemoryStore store;
  const auto words = test::run_ranks(3, [&](comm::Communicator& comm) -> std::string {
    const World world{.comm = comm, .store = store, .asked_to_stop = [&] { return comm.rank() == 2; }};
    try {
      on_every_rank(world, "reading the data", minutes(10), [&](const AskedToStop& asked_to_stop) {
        if (comm.rank() != 1) return;  // it reads; the others wait
        while (!asked_to_stop()) std::this_thread::yield();
        throw TerminatedError("asked to stop: tokenising");
      });
    } catch (const TerminatedError& error) {
      return error.what();
    }
    return "";
  });
  const std::string waited = "asked to stop: reading the data was under way";
  CHECK(words == std::vector<std::string>{waited, "asked to stop: tokenising", waited});
}

}  // namespace trainyard::train
