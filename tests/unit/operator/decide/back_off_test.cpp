#include "decide/back_off.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace trainyard::decide;
using namespace std::chrono_literals;

TEST_CASE("back_off: the first restart waits for nothing, the next ones twice as long each, five minutes at most",
          "[decide]") {
  CHECK(back_off(0, 10s) == 0ms);
  CHECK(back_off(1, 10s) == 0ms);
  CHECK(back_off(2, 10s) == 10s);
  CHECK(back_off(3, 10s) == 20s);
  CHECK(back_off(6, 10s) == 160s);
  CHECK(back_off(7, 10s) == 5min);
  CHECK(back_off(2, 100ms) == 100ms);
  CHECK(back_off(5, 100ms) == 800ms);
  CHECK(back_off(std::numeric_limits<int>::max(), 10s) == 5min);
}

TEST_CASE("longest_wait: it is that of a gang, whose first wait is the longer one", "[decide]") {
  for (const int streak : {0, 1, 2, 5, 30}) {
    CHECK(longest_wait(streak) == back_off(streak, kFirstWait));
    CHECK(longest_wait(streak) >= back_off(streak, 100ms));
  }
}
