#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::metrics {

/// What the bar shows.
struct Progress {
  int64_t step = 0;
  int64_t steps = 0;  ///< in all
  double loss = 0;
  double tokens_per_second = 0;
  std::string_view unit = "tokens";  ///< what a token is to people: "images" where each counts as one
  std::optional<std::chrono::seconds> remaining;
};

/// "0:07", "12:34", "1:02:03", "2d 03:04".
std::string format_duration(std::chrono::seconds duration);

/// The bar in at most `columns` columns. Where room is short the bar shrinks first, then parts leave from the right:
///   step 120/500  ━━━━━━━━━━──────────────────  24%  loss 3.2145  12,345 tokens/s  1:23 left
std::string format_progress(const Progress& progress, size_t columns);

/// Whether a line may be redrawn in place: `output` is a terminal, TERM is a real one, and NO_COLOR is not set.
bool can_redraw(bool is_terminal, const char* term, const char* no_color);

/// Shows how training goes: on a terminal a bar that is redrawn in place, below the lines that scroll by; elsewhere
/// only the lines. No escape code is written where the output is no terminal. For one thread of rank 0.
class ProgressDisplay {
 public:
  enum class Mode { Lines, Bar };
  /// The mode that fits `output` in this process's environment.
  static Mode mode_of(std::FILE* output);

  /// `output` is not owned. `columns` is asked at each drawing of the bar; 0 = the width of the terminal, which may
  /// change.
  explicit ProgressDisplay(std::FILE* output, Mode mode, size_t columns = 0);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// Draws the bar anew, at most ten times a second by `now`, and always at the last step.
  void update(const Progress& progress, std::chrono::steady_clock::time_point now);
  /// Prints a line that stays, above the bar, and flushes.
  void line(std::string_view text);
  /// Takes the bar away, so that others may write; the next update() brings it back.
  void clear();
  /// Leaves the bar as it stands, and the cursor below it.
  void finish();

 private:
  void draw();
  void write(std::string_view text);

  std::FILE* const output_;
  const Mode mode_;
  const size_t columns_;
  std::optional<Progress> shown_;  ///< what stands in the terminal's last line
  std::optional<std::chrono::steady_clock::time_point> drawn_;
};

}  // namespace trainyard::metrics
