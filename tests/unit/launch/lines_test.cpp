#include <catch2/catch.hpp>

#include <cstdlib>

#include "base/files.h"
#include "launch/lines.h"
#include "launch/termination_log.h"
#include "support/support.h"

namespace trainyard::launch {

TEST_CASE("LinePrefixer: every line gets the prefix, in whatever pieces it comes", "[launch]") {
  const std::string text = "one\ntwo\n\nthree";
  const std::string expected = "[rank 1] one\n[rank 1] two\n[rank 1] \n[rank 1] three\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    LinePrefixer lines("[rank 1] ");
    std::string output;
    for (size_t at = 0; at < text.size(); at += piece) output += lines.feed(text.substr(at, piece));
    CHECK(output + lines.finish() == expected);
    CHECK(lines.last_line() == "three");
  }
}

TEST_CASE("LinePrefixer: progress that overwrites itself by carriage returns survives", "[launch]") {
  LinePrefixer lines("> ");
  CHECK(lines.feed("10%\r20%\r30").empty() == false);
  CHECK(lines.feed("%\r\n") == "> 30%\r\n");
  LinePrefixer split("> ");
  CHECK(split.feed("a\r") == "");
  CHECK(split.feed("\nb\r") == "> a\r\n");
  CHECK(split.feed("c") == "> b\r");
  CHECK(split.finish() == "> c\n");
}

TEST_CASE("LinePrefixer: a line without an end is let through in pieces, and memory stays bounded", "[launch]") {
  LinePrefixer lines("> ");
  size_t written = 0;
  for (int i = 0; i < 100; ++i) written += lines.feed(std::string(10000, 'x')).size();
  CHECK(written > 900'000);
  CHECK(lines.last_line().size() == 2048);
}

TEST_CASE("write_termination_log: one line, into a file that is there, and nowhere else", "[launch]") {
  const test::TemporaryFolder folder;
  const std::string file = folder / "log", none = folder / "none";
  write_file_atomically(file, "former content");
  REQUIRE(::setenv("TRAINYARD_TERMINATION_LOG", file.c_str(), 1) == 0);
  write_termination_log("first\nsecond\n");
  REQUIRE(::setenv("TRAINYARD_TERMINATION_LOG", none.c_str(), 1) == 0);
  write_termination_log("lost");
  REQUIRE(::unsetenv("TRAINYARD_TERMINATION_LOG") == 0);
  CHECK(read_file(file) == "first second\n");
  CHECK_FALSE(std::filesystem::exists(none));
  CHECK(one_line(std::string(10000, 'x')).size() == 2048);
}

}  // namespace trainyard::launch
