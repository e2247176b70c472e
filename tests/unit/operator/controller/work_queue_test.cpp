#include "controller/work_queue.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>

using namespace trainyard::controller;
using namespace std::chrono_literals;

namespace {

const WorkQueue::TimePoint kNow{1h};
const std::optional<std::string> kNobody = std::nullopt;

}  // namespace

TEST_CASE("work queue: a key is taken once it is due, and what is due longest first", "[controller]") {
  WorkQueue queue;
  queue.add_at("late", kNow + 5s);
  queue.add_at("early", kNow + 1s);
  CHECK(queue.take(kNow) == kNobody);
  CHECK(queue.next_due() == kNow + 1s);
  CHECK(queue.take(kNow + 5s) == "early");
  CHECK(queue.take(kNow + 5s) == "late");
  CHECK(queue.take(kNow + 5s) == kNobody);
  CHECK_FALSE(queue.next_due());
}

TEST_CASE("work queue: a key that is added twice waits once, for the earlier time", "[controller]") {
  WorkQueue queue;
  queue.add_at("job", kNow + 5s);
  queue.add_at("job", kNow + 9s);
  queue.add_at("job", kNow + 1s);
  CHECK(queue.waiting() == 1);
  CHECK(queue.next_due() == kNow + 1s);
  CHECK(queue.take(kNow + 1s) == "job");
  CHECK(queue.take(kNow + 1h) == kNobody);
}

TEST_CASE("work queue: a key that is worked on is not taken again, and what came meanwhile asks for one more look",
          "[controller]") {
  WorkQueue queue;
  queue.add("job", kNow);
  REQUIRE(queue.take(kNow) == "job");
  queue.add("job", kNow);
  queue.add("job", kNow);
  CHECK(queue.take(kNow + 1h) == kNobody);
  queue.done("job", kNow);
  CHECK(queue.take(kNow) == "job");
  queue.done("job", kNow);
  CHECK(queue.take(kNow + 1h) == kNobody);
}

TEST_CASE("work queue: a key rests for as long as it was told, whoever adds it", "[controller]") {
  WorkQueue queue;
  queue.add("job", kNow);
  REQUIRE(queue.take(kNow) == "job");
  queue.done("job", kNow + 10s);
  queue.add("job", kNow + 1s);
  CHECK(queue.take(kNow + 9s) == kNobody);
  CHECK(queue.next_due() == kNow + 10s);
  CHECK(queue.take(kNow + 10s) == "job");
}

TEST_CASE("work queue: nothing is known of a key that was forgotten, and one that is worked on stays", "[controller]") {
  WorkQueue queue;
  queue.add("gone", kNow);
  queue.add("taken", kNow - 1s);
  REQUIRE(queue.take(kNow) == "taken");
  queue.forget("gone");
  queue.forget("taken");
  CHECK(queue.take(kNow) == kNobody);
  queue.add("taken", kNow);
  CHECK(queue.take(kNow) == kNobody);
  queue.done("taken", kNow);
  CHECK(queue.take(kNow) == "taken");
}

TEST_CASE("work queue: rests double from 100 ms to a minute", "[controller]") {
  CHECK(rest_after(0) == 0ms);
  CHECK(rest_after(1) == 100ms);
  CHECK(rest_after(2) == 200ms);
  CHECK(rest_after(5) == 1600ms);
  CHECK(rest_after(11) == 60s);
  CHECK(rest_after(1'000'000) == 60s);
}
