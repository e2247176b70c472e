#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainyard {

/// Text for a descriptor, put together without memory or locks: what a signal handler can use. What cannot be written
/// is dropped, as there is nobody to tell.
class SignalText {
 public:
  explicit SignalText(int fd) : fd_(fd) {}
  ~SignalText() { flush(); }
  SignalText(const SignalText&) = delete;
  SignalText& operator=(const SignalText&) = delete;

  SignalText& text(std::string_view text) noexcept;
  SignalText& number(int64_t number) noexcept;
  /// The text as a JSON string.
  SignalText& quoted(std::string_view text) noexcept;
  /// Nanoseconds as seconds with six digits.
  SignalText& seconds(int64_t nanoseconds) noexcept;
  void flush() noexcept;

 private:
  void put(char c) noexcept;

  const int fd_;
  std::array<char, 512> buffer_{};
  size_t size_ = 0;
};

/// Nanoseconds since 1970; a signal handler may ask.
int64_t nanoseconds_since_1970() noexcept;

}  // namespace trainyard
