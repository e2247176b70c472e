#include "local/console.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace trainyard::local;
using namespace std::chrono_literals;

namespace {

/// What comes out when these pieces come in, each a tenth of a second after the one before.
std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  Lines lines;
  std::vector<std::string> out;
  const auto sink = [&](std::string_view line) { out.emplace_back(line); };
  Lines::Clock::time_point now(1h);
  for (const std::string& piece : pieces) lines.add(piece, now += 100ms, sink);
  lines.finish(sink);
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("lines: pieces are put together, empty lines stay, the last needs no end", "[console]") {
  CHECK(lines_of({"a\nb", "c\n", "\nd"}) == Texts{"a", "bc", "", "d"});
  CHECK(lines_of({}) == Texts{});
  CHECK(lines_of({"a\r\nb\r\n"}) == Texts{"a", "b"});
}

TEST_CASE("lines: one that does not end is cut", "[console]") {
  const auto out = lines_of({std::string(40'000, 'x'), "y\n"});
  REQUIRE(out.size() == 3);
  CHECK(out[0].size() == 16 * 1024);
  CHECK(out[2] == std::string(40'000 - 2 * 16 * 1024, 'x') + "y");
}

TEST_CASE("lines: of a progress bar one state a second and the last one are passed on", "[console]") {
  std::vector<std::string> pieces;
  for (int percent = 0; percent < 25; ++percent) pieces.push_back("\r" + std::to_string(percent) + "%");
  pieces.push_back("\ndone\n");
  CHECK(lines_of(pieces) == Texts{"0%", "10%", "20%", "24%", "done"});
}

TEST_CASE("lines: where states can be shown each is, and lines have no trace of them", "[console]") {
  Lines lines;
  Texts out, states;
  const auto sink = [&](std::string_view line) { out.emplace_back(line); };
  const auto show = [&](std::string_view text) { states.emplace_back(text); };
  for (const char* const piece : {"begin\n\r\x1b[K1 %", "\r\x1b[K2 %", "\r\x1b[Ka line\n\r\x1b[K2 %", "\n", "end\n"})
    lines.add(piece, Lines::Clock::time_point(1h), sink, show);
  CHECK(out == Texts{"begin", "a line", "2 %", "end"});
  CHECK(states == Texts{"1 %", "2 %", "", "2 %", ""});
}
