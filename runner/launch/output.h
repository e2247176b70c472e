#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "launch/lines.h"

namespace trainyard::launch {

/// One stream of one rank on its way to ours: prefixed there, as it is in a log file where one is wanted.
class Stream {
 public:
  /// `target`: this process's stdout or stderr. `log`: a file to append to, "" for none; throws InputError where it
  /// cannot be written.
  Stream(int target, std::string prefix, const std::string& log);

  /// The child's end, once.
  [[nodiscard]] UniqueFd take_child_end() { return std::move(child_end_); }
  [[nodiscard]] pollfd poll_entry() const { return {.fd = reading_.get(), .events = POLLIN, .revents = 0}; }
  [[nodiscard]] bool is_open() const { return reading_.valid(); }
  /// Passes on what has come; at the end of the stream closes it.
  void pump();
  [[nodiscard]] int target() const { return target_; }
  [[nodiscard]] const std::string& last_line() const { return lines_.last_line(); }

 private:
  int target_;
  UniqueFd reading_, child_end_, log_;
  LinePrefixer lines_;
};

}  // namespace trainyard::launch
