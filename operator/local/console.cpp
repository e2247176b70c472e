#include "local/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "common/write_all.h"

namespace trainyard::local {
namespace {

constexpr size_t kMaxLine = 16 * 1024;
constexpr const char* kOperator = "operator";
constexpr std::array<std::string_view, 6> kColours{"36", "32", "35", "34", "96", "92"};  // none that means trouble
constexpr std::string_view kDim = "2", kYellow = "33";
constexpr std::string_view kToLineEnd = "\x1b[K", kEraseLine = "\r\x1b[K";

bool is_coloured(int fd) {
  return ::isatty(fd) == 1 && !std::getenv("NO_COLOR");
}

/// Shows the text; false where nobody reads it any more. Another error costs this text alone.
bool show_on(int fd, std::string_view text) {
  return write_all(fd, text, WhenFull::Wait).error != EPIPE;
}

/// It keeps at most `columns` characters of UTF-8; 0: all.
std::string_view clipped(std::string_view text, size_t columns) {
  size_t characters = 0;
  for (size_t i = 0; columns > 0 && i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && ++characters == columns) return text.substr(0, i);  // the last column makes some terminals wrap
  }
  return text;
}

}  // namespace

/// The text without what erased the line before it.
std::string_view Lines::text() const {
  std::string_view text = line_;
  if (is_state_ && text.starts_with(kToLineEnd)) text.remove_prefix(kToLineEnd.size());
  return text;
}

void Lines::add(std::string_view bytes, Clock::time_point now, const Sink& sink, const Sink& show_state) {
  for (const char c : bytes) {
    if (c == '\n') {
      if (is_state_ && show_state) show_state("");
      finish(sink, Empty::Shown);
    } else {
      if (is_drawn_over_) pass_state(now, show_state ? nullptr : sink);
      if (c == '\r')
        is_drawn_over_ = true;
      else
        line_ += c;
      if (line_.size() == kMaxLine) finish(sink);
    }
  }
  if (is_state_ && show_state) show_state(text());
}

void Lines::pass_state(Clock::time_point now, const Sink& sink) {
  if (sink && !text().empty() && now - last_state_ >= std::chrono::seconds(1)) {
    last_state_ = now;
    sink(text());
  }
  line_.clear();
  is_drawn_over_ = false;
  is_state_ = true;
}

void Lines::finish(const Sink& sink, Empty empty) {
  if (!text().empty() || empty == Empty::Shown) sink(text());
  line_.clear();
  is_drawn_over_ = is_state_ = false;
}

Console::Console(size_t name_width)
    : name_width_(std::max(name_width, std::string_view(kOperator).size())),
      colours_out_(is_coloured(STDOUT_FILENO)),
      colours_err_(is_coloured(STDERR_FILENO)) {}

void Console::line(std::string_view name, size_t colour, std::string_view text) {
  write(STDOUT_FILENO, name, kColours[colour % kColours.size()], text);
}

void Console::notice(std::string_view text) {
  write(STDERR_FILENO, kOperator, kDim, text);
}

void Console::warning(std::string_view text) {
  write(STDERR_FILENO, kOperator, kYellow, text);
}

size_t Console::columns() const {
  const char* const term = std::getenv("TERM");
  winsize size{};
  if (!colours_out_ || !term || std::string_view(term) == "dumb") return 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  const size_t taken = name_width_ + std::string_view(" | ").size();
  return size.ws_col > taken + 1 ? size.ws_col - taken : 0;
}

void Console::state(std::string_view name, size_t colour, std::string_view text) {
  if (is_closed_) return;
  const std::string footer =
      text.empty() ? "" : prefixed(STDOUT_FILENO, name, kColours[colour % kColours.size()], clipped(text, columns()));
  if (footer == footer_) return;
  footer_ = footer;
  if (!show_on(STDOUT_FILENO, std::string(kEraseLine) + footer_)) is_closed_ = true;
}

std::string Console::prefixed(int fd, std::string_view name, std::string_view colour, std::string_view text) const {
  const bool is_coloured = fd == STDOUT_FILENO ? colours_out_ : colours_err_;
  return is_coloured ? fmt::format("\x1b[{}m{:<{}} |\x1b[0m {}", colour, name, name_width_, text)
                     : fmt::format("{:<{}} | {}", name, name_width_, text);
}

void Console::write(int fd, std::string_view name, std::string_view colour, std::string_view text) {
  if (fd == STDOUT_FILENO && is_closed_) return;
  if (!footer_.empty()) show_on(STDOUT_FILENO, kEraseLine);
  if (!show_on(fd, prefixed(fd, name, colour, text) + "\n") && fd == STDOUT_FILENO) is_closed_ = true;
  if (!footer_.empty()) show_on(STDOUT_FILENO, footer_);
}

}  // namespace trainyard::local
