#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace trainyard::kube {

/// Lines of a stream that comes in pieces. Each byte is looked at once; what has no end yet is kept, up to a limit.
class LineSplitter {
 public:
  explicit LineSplitter(size_t line_limit) : line_limit_(line_limit) {}

  /// Calls `line` for each that `bytes` ends, without its end; empty ones are left out. It returns whether to go on.
  /// False where a line is over the limit: the stream can't be used any more.
  template <typename Line>
  [[nodiscard]] bool feed(std::string_view bytes, Line&& line) {
    for (size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
      if (partial_.size() + end > line_limit_) return false;
      const bool goes_on =
          partial_.empty() ? give(bytes.substr(0, end), line) : give_partial(bytes.substr(0, end), line);
      if (!goes_on) return true;
      bytes.remove_prefix(end + 1);
    }
    if (partial_.size() + bytes.size() > line_limit_) return false;
    partial_.append(bytes);
    return true;
  }

 private:
  template <typename Line>
  [[nodiscard]] bool give(std::string_view text, Line& line) {
    return text.empty() || line(text);
  }
  template <typename Line>
  [[nodiscard]] bool give_partial(std::string_view rest, Line& line) {
    const std::string whole = std::exchange(partial_, {}).append(rest);
    return line(std::string_view(whole));
  }

  size_t line_limit_;
  std::string partial_;
};

}  // namespace trainyard::kube
