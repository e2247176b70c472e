#include "metrics/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <catch2/catch.hpp>

#include "metrics/table.h"

namespace trainyard::metrics {
namespace {
using namespace std::chrono_literals;
constexpr std::chrono::steady_clock::time_point kStart{};

Progress at(int64_t step) {
  return {.step = step, .steps = 500, .loss = 3.21454, .tokens_per_second = 12345.4, .remaining = 83s};
}

/// A FILE that keeps what is written to it.
class Capture {
 public:
  Capture() : file_(::open_memstream(&text_, &size_)) {}
  ~Capture() {
    std::fclose(file_);
    std::free(text_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

TEST_CASE("durations are written as people read them", "[metrics]") {
  CHECK(format_duration(0s) == "0:00");
  CHECK(format_duration(67s) == "1:07");
  CHECK(format_duration(3723s) == "1:02:03");
  CHECK(format_duration(48h + 3h + 4min) == "2d 03:04");
  CHECK(format_duration(-5s) == "0:00");
}

TEST_CASE("the bar fills with the steps and carries loss, speed and what is left", "[metrics]") {
  CHECK(format_progress(at(125), 80) ==
        "step 125/500  ━━━━━───────────────  25%  loss 3.2145  12,345 tokens/s  1:23 left");
  CHECK_THAT(format_progress(at(500), 80), Catch::Contains("━━  100%"));
  CHECK_THAT(format_progress({.tokens_per_second = 9, .unit = "images"}, 80), Catch::Contains("9 images/s"));
  CHECK_THAT(format_progress({.step = 0, .steps = 0}, 80), Catch::Contains("step 0/0  ─"));
}

TEST_CASE("the bar never takes more columns than there are, and gives up its right end first", "[metrics]") {
  for (size_t columns = 0; columns <= 140; ++columns)
    CHECK(display_width(format_progress(at(125), columns)) <= columns);
  CHECK(format_progress(at(125), 62) == "step 125/500  ━━━──────────  25%  loss 3.2145  12,345 tokens/s");
  CHECK(format_progress(at(125), 30) == "step 125/500  ━━─────────  25%");
  CHECK(format_progress(at(125), 20) == "step 125/500");
  CHECK(format_progress(at(125), 6) == "step …");
}

TEST_CASE("a line is redrawn only on a capable terminal, and not where NO_COLOR asks for plain text", "[metrics]") {
  CHECK(can_redraw(true, "xterm", nullptr));
  CHECK(can_redraw(true, "xterm", ""));
  CHECK_FALSE(can_redraw(false, "xterm", nullptr));
  CHECK_FALSE(can_redraw(true, "dumb", nullptr));
  CHECK_FALSE(can_redraw(true, nullptr, nullptr));
  CHECK_FALSE(can_redraw(true, "xterm", "1"));
}

TEST_CASE("in a pipe there are plain lines and nothing else", "[metrics]") {
  Capture capture;
  {
    ProgressDisplay display(capture.file(), ProgressDisplay::mode_of(capture.file()));
    display.update(at(1), kStart);
    display.line("step: 1");
    display.update(at(500), kStart + 1h);
    display.clear();
    display.finish();
  }
  CHECK(capture.text() == "step: 1\n");
}

TEST_CASE("on a terminal the bar is redrawn in place below the lines, and ends with the cursor under it", "[metrics]") {
  Capture capture;
  ProgressDisplay display(capture.file(), ProgressDisplay::Mode::Bar, 31);
  display.update({.step = 1, .steps = 500}, kStart);
  display.update({.step = 2, .steps = 500}, kStart + 50ms);  // too soon to be drawn
  display.line("a line");
  display.update({.step = 500, .steps = 500}, kStart + 60ms);  // the last step always is
  display.finish();
  const std::string first = "\r\x1b[Kstep 1/500  ──────────────  0%";
  CHECK(capture.text() == first + "\r\x1b[Ka line\n" + first + "\r\x1b[Kstep 500/500  ━━━━━━━━━━  100%\n");
}

TEST_CASE("an error finds the terminal's line empty", "[metrics]") {
  Capture capture;
  { ProgressDisplay(capture.file(), ProgressDisplay::Mode::Bar, 40).update(at(1), kStart); }
  CHECK(capture.text().ends_with("\r\x1b[K"));
}

}  // namespace
}  // namespace trainyard::metrics
