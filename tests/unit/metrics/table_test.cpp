#include "metrics/table.h"

#include <catch2/catch.hpp>

#include "base/text.h"

namespace trainyard::metrics {
namespace {

TEST_CASE("a table is a box with aligned columns", "[metrics]") {
  CHECK(format_table("plan", {{"parameters", "29,368,320"}, {"memory a rank", "0.5 GiB"}}) ==
        "┌ plan ──────────────────────┐\n"
        "│ parameters      29,368,320 │\n"
        "│ memory a rank   0.5 GiB    │\n"
        "└────────────────────────────┘\n");
}

TEST_CASE("all lines of a table are as wide as each other and no wider than asked", "[metrics]") {
  const std::string title = GENERATE("t", "a title that is longer than all of its rows together");
  const std::string value =
      GENERATE("", "größer", "a very long value that has to be cut somewhere in the middle of it");
  const size_t width = GENERATE(20, 40, 100);
  const auto lines = split(format_table(title, {{"name", value}, {"größe", "1"}}, width), '\n');
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    CHECK(display_width(lines[i]) == display_width(lines[0]));
    CHECK(display_width(lines[i]) <= width);
  }
}

TEST_CASE("columns are aligned, numbers to the right", "[metrics]") {
  CHECK(format_columns({"op", "calls", "ms"}, {{"matmul", "10", "1.5"}, {"é", "1000", "12.25"}}) ==
        "op      calls     ms\n"
        "matmul     10    1.5\n"
        "é        1000  12.25\n");
  CHECK_THROWS_AS(format_columns({"a"}, {{"b", "c"}}), std::invalid_argument);
}

TEST_CASE("a text is cut by columns, not by bytes", "[metrics]") {
  CHECK(clipped("größer", 6) == "größer");
  CHECK(clipped("größer", 4) == "grö…");
  CHECK(clipped("größer", 3) == "gr…");
  CHECK(clipped("abc", 1) == "…");
  CHECK(clipped("abc", 0).empty());
}

}  // namespace
}  // namespace trainyard::metrics
