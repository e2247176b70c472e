#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace trainyard {

/// What to do where a descriptor that does not block takes nothing for now, as its reader is slow (EAGAIN).
enum class WhenFull {
  Stop,  ///< this is an error like any other
  Wait   ///< until the reader takes more, or is gone
};

/// How far a writing came.
struct Written {
  size_t bytes = 0;  ///< of those that were given, from the first one on
  int error = 0;     ///< the value of errno that stopped it; 0: all bytes are written

  [[nodiscard]] bool is_complete() const { return error == 0; }
};

/// Writes all of `bytes` to `fd`: goes on after a part of them was taken and after a signal. A signal handler may call
/// it, with WhenFull::Stop. The process ignores SIGPIPE, or dies where a pipe's reader is gone.
[[nodiscard]] Written write_all(int fd, std::span<const std::byte> bytes, WhenFull when_full = WhenFull::Stop) noexcept;
[[nodiscard]] Written write_all(int fd, std::string_view text, WhenFull when_full = WhenFull::Stop) noexcept;

}  // namespace trainyard
