#include <catch2/catch.hpp>

#include "launch/gang.h"

namespace trainyard::launch {
namespace {

using namespace std::chrono_literals;
using Action = Gang::Action;

const Gang::TimePoint kNow{};

Ending exited(int rank, int code) {
  return {rank, code, 0};
}
Ending killed(int rank, int signal) {
  return {rank, 128 + signal, signal};
}

}  // namespace

TEST_CASE("Gang: all end well", "[launch]") {
  Gang gang(2, 30s);
  CHECK(gang.ended({exited(1, 0)}, kNow) == Action::None);
  CHECK_FALSE(gang.is_over());
  CHECK_FALSE(gang.deadline());
  CHECK(gang.ended({exited(0, 0)}, kNow) == Action::None);
  CHECK(gang.is_over());
  CHECK(gang.exit_code() == 0);
  CHECK_FALSE(gang.first_failure());
}

TEST_CASE("Gang: one fails, the others are asked and then killed, and its code is the launcher's", "[launch]") {
  Gang gang(3, 30s);
  CHECK(gang.ended({exited(1, 2)}, kNow) == Action::Terminate);
  CHECK(gang.deadline() == kNow + 4s);
  CHECK(gang.ended({exited(2, 143)}, kNow + 1s) == Action::None);
  CHECK(gang.at(kNow + 3999ms) == Action::None);
  CHECK(gang.at(kNow + 4s) == Action::Kill);
  CHECK(gang.ended({killed(0, 9)}, kNow + 4s) == Action::None);
  CHECK(gang.exit_code() == 2);
  CHECK(gang.first_failure()->rank == 1);
}

TEST_CASE("Gang: what a restart would repeat is not worth one, nor is a device at fault", "[launch]") {
  for (const int code : {2, 3, 140}) {
    CHECK_FALSE(is_worth_restarting(exited(0, code), true));
    CHECK(is_worth_restarting(exited(0, code), false));
  }
  CHECK(is_worth_restarting(exited(0, 1), true));
  CHECK(is_worth_restarting(exited(0, 138), true));
  CHECK(is_worth_restarting(killed(0, 9), true));
}

TEST_CASE("Gang: a shorter grace than 4 s also bounds the end after a failure", "[launch]") {
  Gang gang(2, 500ms);
  CHECK(gang.ended({killed(0, 11)}, kNow) == Action::Terminate);
  CHECK(gang.deadline() == kNow + 500ms);
  CHECK(gang.exit_code() == 139);
}

TEST_CASE("Gang: of endings seen together, one that only lost its peer is not the first failure", "[launch]") {
  Gang gang(3, 30s);
  gang.ended({exited(0, 138), killed(1, 9), exited(2, 138)}, kNow);
  CHECK(gang.first_failure()->rank == 1);
  CHECK(gang.exit_code() == 137);
}

TEST_CASE("Gang: one that failed by itself is the first failure, though one that lost it was quicker to end",
          "[launch]") {
  Gang gang(4, 30s);
  CHECK(gang.ended({exited(0, 138)}, kNow) == Action::Terminate);
  CHECK(gang.ended({killed(1, 15)}, kNow) == Action::None);  // by us
  CHECK(gang.first_failure()->rank == 0);
  gang.ended({exited(2, 2)}, kNow);
  gang.ended({exited(3, 140)}, kNow);
  CHECK(gang.first_failure()->rank == 2);
  CHECK(gang.exit_code() == 2);
}

TEST_CASE("Gang: a cause is the first failure after a victim's 138, whatever its code or signal, and what we kill is none",
          "[launch]") {
  const Ending cause = GENERATE(exited(0, 1), exited(0, 3), exited(0, 77), killed(0, 6), killed(0, 9));
  Gang gang(3, 30s);
  CHECK(gang.ended({exited(1, 138)}, kNow) == Action::Terminate);
  gang.ended({cause}, kNow + 1s);
  CHECK(gang.first_failure()->rank == 0);
  CHECK(gang.exit_code() == cause.code);
  CHECK(gang.at(kNow + 4s) == Action::Kill);
  gang.ended({killed(2, 9)}, kNow + 4s);
  CHECK(gang.exit_code() == cause.code);

  Gang slow(2, 30s);
  slow.ended({exited(1, 138)}, kNow);
  CHECK(slow.at(kNow + 4s) == Action::Kill);
  slow.ended({killed(0, 9)}, kNow + 4s);
  CHECK(slow.exit_code() == 138);
  CHECK(slow.first_failure()->rank == 1);
}

TEST_CASE("Gang: a signal gives the ranks the grace to save, and ends in 143", "[launch]") {
  Gang gang(2, 30s);
  CHECK(gang.asked_to_stop(kNow) == Action::Terminate);
  CHECK(gang.deadline() == kNow + 30s);
  CHECK(gang.ended({exited(0, 143)}, kNow + 20s) == Action::None);
  CHECK(gang.deadline() == kNow + 30s);
  CHECK(gang.ended({killed(1, 15)}, kNow + 20s) == Action::None);
  CHECK(gang.exit_code() == 143);
  CHECK_FALSE(gang.first_failure());
}

TEST_CASE("Gang: who outlives the grace is killed, and ends in 137: nobody saved. Asked twice, it does not wait",
          "[launch]") {
  Gang gang(1, 30s);
  gang.asked_to_stop(kNow);
  const bool is_impatient = GENERATE(false, true);
  CHECK((is_impatient ? gang.asked_to_stop(kNow + 1s) : gang.at(kNow + 30s)) == Action::Kill);
  gang.ended({killed(0, 9)}, kNow + 30s);
  CHECK(gang.exit_code() == 137);
  CHECK(gang.is_asked());
  CHECK_FALSE(gang.first_failure());
}

TEST_CASE("Gang: where one rank of a stopped gang ended with 143 all had saved, however the others ended", "[launch]") {
  Gang gang(3, 30s);
  gang.asked_to_stop(kNow);
  const bool one_saved = GENERATE(true, false);
  gang.ended({exited(0, 138)}, kNow + 1s);
  gang.ended({exited(1, one_saved ? 143 : 0)}, kNow + 2s);
  CHECK(gang.at(kNow + 30s) == Action::Kill);
  gang.ended({killed(2, 9)}, kNow + 30s);
  CHECK(gang.exit_code() == (one_saved ? 143 : 138));
}

TEST_CASE("Gang: ranks that finish although asked to stop are done", "[launch]") {
  Gang gang(1, 30s);
  gang.asked_to_stop(kNow);
  gang.ended({exited(0, 0)}, kNow);
  CHECK(gang.exit_code() == 0);
}

TEST_CASE("Gang: a save that fails while stopping is the launcher's code", "[launch]") {
  Gang gang(2, 30s);
  gang.asked_to_stop(kNow);
  CHECK(gang.ended({exited(0, 1)}, kNow) == Action::Terminate);
  gang.ended({exited(1, 143)}, kNow);
  CHECK(gang.exit_code() == 1);
}

TEST_CASE("Gang: a rank that ends with 143 by itself means that all are saving: they get the grace", "[launch]") {
  Gang gang(2, 30s);
  CHECK(gang.ended({exited(0, 143)}, kNow) == Action::Terminate);
  CHECK(gang.deadline() == kNow + 30s);
  gang.ended({exited(1, 143)}, kNow + 10s);
  CHECK(gang.exit_code() == 143);
}

}  // namespace trainyard::launch
