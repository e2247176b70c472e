#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard {

/// A moment by the calendar, as the API writes it. What decides gets `now` handed in; nobody below cli/ and controller/
/// reads a clock of its own.
using TimePoint = std::chrono::system_clock::time_point;

/// "2026-11-21T10:00:00Z", fractions of a second cut off: metav1.Time.
[[nodiscard]] std::string format_time(TimePoint time);
/// "2026-11-21T10:00:00.123456Z": metav1.MicroTime, as leases have it.
[[nodiscard]] std::string format_micro_time(TimePoint time);
/// RFC 3339 with any fraction and any offset; none where `text` is something else.
[[nodiscard]] std::optional<TimePoint> parse_time(std::string_view text);

/// "90 s", "1 min 30 s", "2 h": for messages.
[[nodiscard]] std::string human_duration(std::chrono::milliseconds duration);

}  // namespace trainyard
