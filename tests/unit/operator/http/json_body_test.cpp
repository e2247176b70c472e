#include "http/json_body.h"

#include <catch2/catch.hpp>

using namespace trainyard;
using namespace trainyard::http;

TEST_CASE("parse_body: JSON is taken, at the deepest nesting too", "[http]") {
  CHECK(parse_body(R"({"a": [1, "]]]{{{", "\"{"]})")["a"][1] == "]]]{{{");
  CHECK(parse_body(std::string(128, '[') + std::string(128, ']')).is_array());
}

TEST_CASE("parse_body: what is no JSON is refused with the place", "[http]") {
  CHECK_THROWS_WITH(parse_body(""), "the body is empty; JSON is expected");
  CHECK_THROWS_WITH(parse_body("{\"a\": "), Catch::StartsWith("the body is no JSON: parse error at line 1, column 7"));
  CHECK_THROWS_AS(parse_body("\"\xff\""), BadBody);
  CHECK_THROWS_AS(parse_body("{} {}"), BadBody);
  CHECK_THROWS_AS(parse_body("1e999"), BadBody);
}

TEST_CASE("parse_body: a body of nothing but brackets is refused before it is parsed", "[http]") {
  CHECK_THROWS_WITH(parse_body(std::string(129, '[')), "the body is nested deeper than 128 levels");
  CHECK_THROWS_AS(parse_body(std::string(3'000'000, '[')), BadBody);
  CHECK_THROWS_AS(parse_body(std::string(1000, '}')), BadBody);
}
