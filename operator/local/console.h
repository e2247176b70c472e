#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace trainyard::local {

/// Cuts a stream into lines. A line that is longer than 16 KiB goes on in the next. A carriage return draws over what
/// stands there (a progress bar). Where states can be shown each is passed on, "" when it is over; elsewhere one is
/// passed on as a line at most once a second, the last one always.
class Lines {
 public:
  using Clock = std::chrono::steady_clock;
  using Sink = std::function<void(std::string_view line)>;
  enum class Empty { Shown, LeftOut };

  /// `show_state`: null where states cannot be shown.
  void add(std::string_view bytes, Clock::time_point now, const Sink& sink, const Sink& show_state = nullptr);
  /// What stands there without a line's end.
  void finish(const Sink& sink, Empty empty = Empty::LeftOut);

 private:
  void pass_state(Clock::time_point now, const Sink& sink);
  [[nodiscard]] std::string_view text() const;

  std::string line_;
  bool is_drawn_over_ = false;  ///< a carriage return came: what follows, but a line's end, replaces `line_`
  bool is_state_ = false;       ///< `line_` replaced another
  Clock::time_point last_state_{};
};

/// Where people look: the pods' lines on stdout, notices on stderr, each behind a name; coloured on a terminal, where a
/// pod's progress bar stands below them.
class Console {
 public:
  /// Names are padded to `name_width`.
  explicit Console(size_t name_width);

  void line(std::string_view name, size_t colour, std::string_view text);
  /// What stands below the lines from now on; "": nothing does. Only where columns() says so.
  void state(std::string_view name, size_t colour, std::string_view text);
  /// The columns of the terminal beside the names; 0 where stdout is none that can be drawn over.
  [[nodiscard]] size_t columns() const;
  void notice(std::string_view text);
  void warning(std::string_view text);
  /// Nobody reads stdout any more.
  [[nodiscard]] bool is_closed() const { return is_closed_; }

 private:
  void write(int fd, std::string_view name, std::string_view colour, std::string_view text);
  [[nodiscard]] std::string prefixed(int fd, std::string_view name, std::string_view colour,
                                     std::string_view text) const;

  size_t name_width_;
  std::string footer_;  ///< as it stands in the terminal's last line
  bool colours_out_, colours_err_;
  bool is_closed_ = false;
};

}  // namespace trainyard::local
