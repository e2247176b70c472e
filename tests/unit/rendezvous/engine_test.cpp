#include <catch2/catch.hpp>

#include "rendezvous/engine.h"

namespace trainyard::rendezvous {
namespace {

using namespace std::chrono_literals;
using Status = Reply::Status;

const TimePoint kNow{};

Request set(std::string key, std::string value) {
  return {1, Operation::Set, {std::move(key)}, std::move(value)};
}
Request wait(uint32_t id, std::vector<std::string> keys, int64_t milliseconds) {
  return {id, Operation::Wait, std::move(keys), "", std::nullopt, milliseconds};
}

}  // namespace

TEST_CASE("Engine: a wait is answered by the set that brings its last key", "[rendezvous]") {
  Engine engine;
  CHECK(engine.handle(7, wait(5, {"a", "b"}, 1000), kNow).empty());
  CHECK(engine.handle(8, set("b", "2"), kNow).size() == 1);
  const Answers answers = engine.handle(8, set("a", "1"), kNow);
  REQUIRE(answers.size() == 2);
  CHECK(answers[1].connection == 7);
  CHECK(answers[1].reply.id == 5);
  CHECK(answers[1].reply.values == std::vector<std::string>{"1", "2"});
  CHECK(engine.waiting() == 0);
  CHECK_FALSE(engine.next_deadline());
}

TEST_CASE("Engine: a wait past its time names the keys that are missing", "[rendezvous]") {
  Engine engine;
  engine.handle(8, set("a", "1"), kNow);
  engine.handle(7, wait(5, {"a", "b", "c"}, 1000), kNow);
  CHECK(engine.next_deadline() == kNow + 1000ms);
  CHECK(engine.expire(kNow + 999ms).empty());
  const Answers answers = engine.expire(kNow + 1000ms);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].reply.status == Status::Missing);
  CHECK(answers[0].reply.values == std::vector<std::string>{"b", "c"});
  CHECK(engine.handle(8, set("b", ""), kNow).size() == 1);
}

TEST_CASE("Engine: a wait of no time is answered at once", "[rendezvous]") {
  Engine engine;
  CHECK(engine.handle(7, wait(5, {"a"}, 0), kNow).at(0).reply.status == Status::Missing);
  CHECK(engine.handle(7, wait(5, {"a"}, -5), kNow).at(0).reply.status == Status::Missing);
  CHECK(engine.handle(7, wait(5, {}, 0), kNow).at(0).reply.status == Status::Done);
}

TEST_CASE("Engine: a key erased while others are waited for is missed again", "[rendezvous]") {
  Engine engine;
  engine.handle(8, set("a", "1"), kNow);
  engine.handle(7, wait(5, {"a", "b"}, 1000), kNow);
  engine.handle(8, {2, Operation::Erase, {"a"}, ""}, kNow);
  CHECK(engine.handle(8, set("b", "2"), kNow).size() == 1);
  CHECK(engine.handle(8, set("a", "3"), kNow).size() == 2);
}

TEST_CASE("Engine: add and compare-and-set wake waits too, and a compare-and-set that sets nothing does not",
          "[rendezvous]") {
  Engine engine;
  engine.handle(7, wait(5, {"n"}, 1000), kNow);
  CHECK(engine.handle(8, {2, Operation::CompareAndSet, {"n"}, "x", "other"}, kNow).size() == 1);
  CHECK(engine.handle(8, {2, Operation::Add, {"n"}, "", std::nullopt, 1}, kNow).size() == 2);
}

TEST_CASE("Engine: what a connection has claimed goes with it, and its waits do", "[rendezvous]") {
  Engine engine;
  const auto claim = [&](ConnectionId connection, const std::string& key, const std::string& value) {
    return engine.handle(connection, {1, Operation::Claim, {key}, value}, kNow).at(0).reply.values.at(0);
  };
  CHECK(claim(7, "mine", "7") == "7");
  CHECK(claim(8, "mine", "8") == "7");
  CHECK(claim(7, "made lasting", "7") == "7");
  engine.handle(8, set("made lasting", "x"), kNow);
  engine.handle(7, set("stays", "x"), kNow);
  CHECK(claim(7, "stays", "7") == "x");
  engine.handle(7, wait(5, {"never"}, 1000), kNow);
  engine.disconnect(7);
  CHECK(engine.waiting() == 0);
  CHECK_FALSE(engine.next_deadline());
  CHECK(engine.table().find("made lasting") != nullptr);
  CHECK(engine.table().find("stays") != nullptr);
  CHECK(claim(8, "mine", "8") == "8");
  CHECK(engine.handle(8, set("never", ""), kNow).size() == 1);
}

TEST_CASE("Engine: what breaks a limit is refused with a text and changes nothing", "[rendezvous]") {
  Engine engine({.keys = 10, .bytes = 4000});
  const Reply full = engine.handle(7, set("k", std::string(4000, 'v')), kNow).at(0).reply;
  CHECK(full.status == Status::Refused);
  CHECK(full.values.size() == 1);
  CHECK(engine.table().size() == 0);
  const Reply waits = engine.handle(7, wait(5, std::vector<std::string>(200, "key"), 1000), kNow).at(0).reply;
  CHECK(waits.status == Status::Refused);
  for (uint32_t i = 0; i < 64; ++i) CHECK(engine.handle(7, wait(i, {"k"}, 1000), kNow).empty());
  CHECK(engine.handle(7, wait(64, {"k"}, 1000), kNow).at(0).reply.status == Status::Refused);
  CHECK(engine.handle(8, wait(64, {"k"}, 1000), kNow).empty());
}

TEST_CASE("Engine: a thousand waits for the same thousand keys end together", "[rendezvous]") {
  Engine engine;
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back("rank/" + std::to_string(i));
  for (ConnectionId i = 0; i < 1000; ++i) CHECK(engine.handle(i, wait(0, keys, 1000), kNow).empty());
  for (int i = 999; i > 0; --i) engine.handle(0, set(keys[i], "x"), kNow);
  CHECK(engine.waiting() == 1000);
  CHECK(engine.handle(0, set(keys[0], "x"), kNow).size() == 1001);
}

}  // namespace trainyard::rendezvous
