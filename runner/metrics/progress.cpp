#include "metrics/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "metrics/table.h"

namespace trainyard::metrics {
namespace {

constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr size_t kWidestBar = 40, kNarrowestBar = 8;
constexpr std::string_view kEraseLine = "\r\x1b[K";

double fraction_of(const Progress& progress) {
  if (progress.steps <= 0) return 0;
  return std::clamp(static_cast<double>(progress.step) / static_cast<double>(progress.steps), 0.0, 1.0);
}

std::string bar_of(double fraction, size_t width) {
  const auto done = static_cast<size_t>(fraction * static_cast<double>(width));
  std::string bar;
  for (size_t i = 0; i < width; ++i) bar += i < done ? "━" : "─";
  return bar;
}

/// The width of the terminal that a program which passes our output on says it has; 0: none says so.
size_t columns_elsewhere() {
  const char* const text = std::getenv("TRAINYARD_TERMINAL_COLUMNS");
  return text ? static_cast<size_t>(std::clamp<int64_t>(parse_int(text).value_or(0), 0, 1000)) : 0;
}

size_t terminal_columns(std::FILE* output) {
  if (const size_t columns = columns_elsewhere(); columns > 0) return columns;
  winsize size{};
  constexpr size_t kUsual = 80;  // some terminals (a serial line, a container's) say 0
  return ::ioctl(::fileno(output), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

std::string format_duration(std::chrono::seconds duration) {
  const int64_t seconds = std::max<int64_t>(0, duration.count());
  const int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (days > 0) return fmt::format("{}d {:02}:{:02}", days, hours % 24, minutes % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes % 60, seconds % 60);
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

std::string format_progress(const Progress& progress, size_t columns) {
  const std::string head = fmt::format("step {}/{}", progress.step, progress.steps);
  std::vector<std::string> tail{
      fmt::format("{:.0f}%", 100 * fraction_of(progress)), fmt::format("loss {:.4f}", progress.loss),
      fmt::format("{} {}/s", with_thousands(static_cast<int64_t>(progress.tokens_per_second + 0.5)), progress.unit)};
  if (progress.remaining) tail.push_back(format_duration(*progress.remaining) + " left");
  for (; !tail.empty(); tail.pop_back()) {
    const std::string end = fmt::format("  {}", fmt::join(tail, "  "));
    const size_t taken = head.size() + end.size() + 2;
    if (taken + kNarrowestBar <= columns)
      return fmt::format("{}  {}{}", head, bar_of(fraction_of(progress), std::min(kWidestBar, columns - taken)), end);
  }
  return clipped(head, columns);
}

bool can_redraw(bool is_terminal, const char* term, const char* no_color) {
  if (!is_terminal || (no_color && *no_color)) return false;
  return term && *term && std::strcmp(term, "dumb") != 0;
}

ProgressDisplay::Mode ProgressDisplay::mode_of(std::FILE* output) {
  // mpirun gives a rank a terminal of its own making, also where its own output is a pipe.
  const bool is_own = ::isatty(::fileno(output)) == 1 && !std::getenv("OMPI_COMM_WORLD_RANK");
  const bool is_terminal = is_own || columns_elsewhere() > 0;
  const bool redraw = can_redraw(is_terminal, std::getenv("TERM"), std::getenv("NO_COLOR"));
  return redraw ? Mode::Bar : Mode::Lines;
}

ProgressDisplay::ProgressDisplay(std::FILE* output, Mode mode, size_t columns)
    : output_(output), mode_(mode), columns_(columns) {}

// An error's line begins where the bar stood.
ProgressDisplay::~ProgressDisplay() {
  clear();
}

void ProgressDisplay::update(const Progress& progress, std::chrono::steady_clock::time_point now) {
  if (mode_ == Mode::Lines) return;
  const bool is_due = !shown_ || !drawn_ || now - *drawn_ >= kBetweenDrawings || progress.step >= progress.steps;
  if (!is_due) return;
  shown_ = progress;
  drawn_ = now;
  draw();
}

void ProgressDisplay::line(std::string_view text) {
  write(fmt::format("{}{}\n", shown_ ? kEraseLine : "", text));
  if (shown_) draw();
}

void ProgressDisplay::clear() {
  if (!shown_) return;
  write(kEraseLine);
  shown_.reset();
}

void ProgressDisplay::finish() {
  if (!shown_) return;
  write("\n");
  shown_.reset();
}

void ProgressDisplay::draw() {
  // One column less than there are: a full last column makes some terminals begin a new line.
  const size_t columns = columns_ ? columns_ : terminal_columns(output_);
  write(fmt::format("{}{}", kEraseLine, format_progress(*shown_, columns - 1)));
}

void ProgressDisplay::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), output_);
  std::fflush(output_);
}

}  // namespace trainyard::metrics
