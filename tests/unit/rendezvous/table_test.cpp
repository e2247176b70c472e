#include <catch2/catch.hpp>

#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "rendezvous/memory_store.h"

namespace trainyard::rendezvous {
using namespace std::chrono_literals;

TEST_CASE("Table: counts its keys and bytes, and refuses what breaks a limit without a change", "[rendezvous]") {
  Table table({.keys = 2, .bytes = 10});
  table.set("a", "12345");
  CHECK(table.bytes() == 6);
  table.set("a", "1");
  CHECK(table.bytes() == 2);
  CHECK_THROWS_WITH(table.set("b", "1234567890"), Catch::Contains("full"));
  CHECK(table.find("b") == nullptr);
  table.set("b", "2");
  CHECK_THROWS_WITH(table.set("c", ""), Catch::Contains("2 keys"));
  CHECK(table.erase("a"));
  CHECK_FALSE(table.erase("a"));
  CHECK(table.bytes() == 2);
  CHECK_THROWS_WITH(Table().set(std::string(kMaxKeyBytes + 1, 'k'), ""), Catch::Contains("1025 bytes"));
  CHECK_THROWS_WITH(Table().set("", ""), Catch::Contains("0 bytes"));
  CHECK_THROWS_WITH(Table().set("k", std::string(kMaxValueBytes + 1, 'v')), Catch::Contains("1048577 bytes"));
}

TEST_CASE("Table: add counts from zero, and refuses text and overflow", "[rendezvous]") {
  Table table;
  CHECK(table.add("n", 5) == 5);
  CHECK(table.add("n", -7) == -2);
  CHECK(*table.find("n") == "-2");
  table.set("text", "x");
  CHECK_THROWS_WITH(table.add("text", 1), Catch::Contains("no whole number"));
  table.set("max", "9223372036854775807");
  CHECK_THROWS_WITH(table.add("max", 1), Catch::Contains("leaves 64 bits"));
  CHECK(*table.find("max") == "9223372036854775807");
}

TEST_CASE("Table: compare_and_set sets only over what was expected", "[rendezvous]") {
  Table table;
  CHECK(table.compare_and_set("k", "a", "b").empty());
  CHECK(table.compare_and_set("k", std::nullopt, "a") == "a");
  CHECK(table.compare_and_set("k", std::nullopt, "b") == "a");
  CHECK(table.compare_and_set("k", "x", "b") == "a");
  CHECK(table.compare_and_set("k", "a", "b") == "b");
  CHECK(*table.find("k") == "b");
}

TEST_CASE("Store::wait: gives values in order, or names what is missing", "[rendezvous]") {
  MemoryStore store;
  const std::vector<std::string> keys{"b", "a"};
  store.set("b", "2");
  CHECK_THROWS_AS(store.wait(keys, 0ms), PeerError);
  CHECK_THROWS_WITH(store.wait(keys, 0ms), "waited 0 ms for 'a' in the rendezvous store");
  std::jthread setter([&] { store.set("a", "1"); });
  CHECK(store.wait(keys, 30s) == std::vector<std::string>{"2", "1"});
  CHECK_FALSE(store.get("c").has_value());
}

}  // namespace trainyard::rendezvous
