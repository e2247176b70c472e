#include "config/value.h"

#include <catch2/catch.hpp>

#include "unit/config/error_of.h"

namespace trainyard::config {
namespace {
using namespace std::chrono_literals;
using std::chrono::milliseconds;

Value parse(const Value& type, const std::string& text) {
  return parse_value({type, {}, {}}, text, "key");
}

std::string refusal(const Rule& rule, const std::string& text) {
  return error_of([&] { static_cast<void>(parse_value(rule, text, "t.yaml:3: a.b")); });
}

TEST_CASE("a duration is a number with a unit, and prints in the largest unit that divides it", "[config]") {
  struct Row {
    const char* text;
    milliseconds value;
    const char* printed;
  };
  const Row row = GENERATE(Row{"30s", 30s, "30s"}, Row{"10min", 10min, "10min"}, Row{"10m", 10min, "10min"},
                           Row{"1h", 1h, "1h"}, Row{"90min", 90min, "90min"}, Row{"500ms", 500ms, "500ms"},
                           Row{"1.5s", 1500ms, "1500ms"}, Row{"2 H", 2h, "2h"}, Row{"0s", 0ms, "0s"});
  CAPTURE(row.text);
  const Value value = parse(milliseconds(0), row.text);
  CHECK(value == Value(row.value));
  CHECK(format_value(value) == row.printed);
}

TEST_CASE("numbers print with the digits that bring back the same double", "[config]") {
  const double number = GENERATE(0.1, 3e-4, 1.0 / 3, 1e-8, 12345678.9, 2.5e300, 0.0);
  CHECK(parse(0.0, format_value(number)) == Value(number));
}

TEST_CASE("lists are read with and without brackets", "[config]") {
  const Value expected = std::vector<double>{0.9, 0.95};
  CHECK(parse(std::vector<double>{}, "[0.9, 0.95]") == expected);
  CHECK(parse(std::vector<double>{}, "0.9,0.95") == expected);
  CHECK(format_value(expected) == "[0.9, 0.95]");
}

TEST_CASE("seeds use all 64 bits", "[config]") {
  CHECK(parse(uint64_t{0}, "18446744073709551615") == Value(UINT64_MAX));
}

TEST_CASE("words of an enumeration are taken in any case and by their aliases", "[config]") {
  const Rule rule{std::string("fp32"), {}, {{"fp32", {"float32"}}, {"bf16", {"bfloat16"}}}};
  CHECK(parse_value(rule, "BF16", "key") == Value(std::string("bf16")));
  CHECK(parse_value(rule, "Float32", "key") == Value(std::string("fp32")));
}

TEST_CASE("a value that does not fit is refused with what would", "[config]") {
  struct Row {
    Rule rule;
    std::string text;
    std::string message;
  };
  const Limits beta{.min = 0, .max = 1, .below_max = true, .entries = 2};
  const std::vector<Choice> decays{{"cosine", {}}, {"linear", {}}};
  const std::string whole = "it must be a whole number, at least 1 and at most 9";
  const std::string betas = "it must be a list of 2 numbers, such as [0.9, 0.95], each at least 0 and below 1";
  const std::string seed = "it must be a whole number from 0 to 2^64 - 1";
  const std::string duration = "it must be a duration such as 500ms, 30s, 10min or 1h, at least 1ms and at most 168h";
  const Rule count{int64_t{0}, {.min = 1, .max = 9}, {}}, wait{1s, {.min = 1, .max = 168.0 * 3'600'000}, {}};
  const Rule pair{std::vector<double>{}, beta, {}};
  const std::vector<Row> rows{
      {count, "ten", whole},
      {count, "3.5", whole},
      {count, "", whole},
      {count, "10", whole},
      {count, "99999999999999999999", whole},
      {{uint64_t{0}, {}, {}}, "-1", seed},
      {{0.0, {.min = 0, .above_min = true}, {}}, "0", "it must be a number, above 0"},
      {{0.0, {}, {}}, "nan", "it must be a number"},
      {{0.0, {}, {}}, "1e999", "it must be a number"},
      {{true, {}, {}}, "yes", "use true or false"},
      {pair, "[0.9]", betas},
      {pair, "[0.9, 1.0]", betas},
      {pair, "[0.9, 0.95", betas},
      {pair, "", betas},
      {wait, "600", duration},
      {wait, "0s", duration},
      {wait, "1e9h", duration},
      {wait, "10 weeks", duration},
      {{std::string("cosine"), {}, decays}, "cosin", "use cosine or linear (did you mean cosine?)"},
      {{std::string("cosine"), {}, decays}, "step", "use cosine or linear"},
      {{std::string("x"), {.not_empty = true}, {}}, "", "it must be a text that is not empty"},
      {{std::string("x"), {}, {}}, "\xC0\x80", "it must be a text in UTF-8"},
      {{std::string("x"), {}, {}}, "\xED\xA0\x80", "it must be a text in UTF-8"},
  };
  for (const Row& row : rows)
    CHECK(refusal(row.rule, row.text) == "t.yaml:3: a.b is '" + row.text + "'; " + row.message);
}

TEST_CASE("what is shown of a value stays on one line and is cut between characters", "[config]") {
  CHECK(shown("a\nb\tc\x1b[1m") == "a\\nb\\x09c\\x1b[1m");
  CHECK(shown(std::string(79, 'a') + "é" + "tail") == std::string(79, 'a') + "…");
  CHECK(shown(std::string(78, 'a') + "é" + "tail") == std::string(78, 'a') + "é…");
}

}  // namespace
}  // namespace trainyard::config
