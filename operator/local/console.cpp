#include "local/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace trainyard::local {
namespace {

constexpr size_t kMaxLine = 16 * 1024;
constexpr const char* kOperator = "operator";
constexpr std::array<std::string_view, 6> kColours{"36", "32", "35", "34", "96", "92"};  // none that means trouble
constexpr std::string_view kDim = "2", kYellow = "33";

bool is_coloured(int fd) {
  return ::isatty(fd) == 1 && !std::getenv("NO_COLOR");
}

/// All of it, also where the reader is slow and the descriptor does not block; false where there is no reader.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&entry, 1, -1);
    } else if (errno != EINTR) {
      return errno != EPIPE;
    }
  }
  return true;
}

}  // namespace

void Lines::add(std::string_view bytes, Clock::time_point now, const Sink& sink) {
  for (const char c : bytes) {
    if (c == '\n') {
      finish(sink, Empty::Shown);
    } else {
      if (is_drawn_over_) pass_state(now, sink);
      if (c == '\r')
        is_drawn_over_ = true;
      else
        line_ += c;
      if (line_.size() == kMaxLine) finish(sink);
    }
  }
}

void Lines::pass_state(Clock::time_point now, const Sink& sink) {
  if (!line_.empty() && now - last_state_ >= std::chrono::seconds(1)) {
    last_state_ = now;
    sink(line_);
  }
  line_.clear();
  is_drawn_over_ = false;
}

void Lines::finish(const Sink& sink, Empty empty) {
  if (!line_.empty() || empty == Empty::Shown) sink(line_);
  line_.clear();
  is_drawn_over_ = false;
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

void Console::write(int fd, std::string_view name, std::string_view colour, std::string_view text) {
  if (fd == STDOUT_FILENO && is_closed_) return;
  const bool is_coloured = fd == STDOUT_FILENO ? colours_out_ : colours_err_;
  const std::string line = is_coloured ? fmt::format("\x1b[{}m{:<{}} |\x1b[0m {}\n", colour, name, name_width_, text)
                                       : fmt::format("{:<{}} | {}\n", name, name_width_, text);
  if (!write_all(fd, line) && fd == STDOUT_FILENO) is_closed_ = true;
}

}  // namespace trainyard::local
