#pragma once

#include <string>
#include <string_view>

namespace trainyard::launch {

/// Puts a prefix before every line of a stream that comes in any pieces. A carriage return ends a line too, so progress
/// bars that overwrite themselves keep working, each under its own prefix. Pure: bytes in, bytes out.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  /// What can be written now: whole lines only, so that lines of several ranks never mix. A line without an end is let
  /// through in pieces of 64 KiB.
  std::string feed(std::string_view bytes);
  /// What is left at the stream's end, made a whole line.
  std::string finish();

  /// The last line that was not empty, at most 2 KiB of it: of a failed rank most likely the reason.
  [[nodiscard]] const std::string& last_line() const { return last_line_; }

 private:
  void take(std::string_view line, std::string_view end, std::string& output);

  std::string prefix_, partial_, last_line_;
};

}  // namespace trainyard::launch
