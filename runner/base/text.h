#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// `text` with `by` wherever `what`, which is not empty, stands in it.
std::string replaced(std::string text, std::string_view what, std::string_view by);

/// The known word nearest to `word` by edit distance, for "did you mean …"; none where nothing is near
/// (more than a third of the longer word would have to change).
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known);

/// 1234567 as "1,234,567".
std::string with_thousands(int64_t value);

/// Bytes as "512 B", "1.5 KiB", "0.52 GiB".
std::string human_bytes(uint64_t bytes);

/// A time-out as people say it: "250 ms", "2.5 s", "30 s", "30 min".
std::string human_duration(std::chrono::milliseconds duration);

/// "123", "500MB", "5GB", "64KiB", "4GiB" as bytes: powers of ten, with an i of two; none for anything else.
std::optional<uint64_t> parse_bytes(std::string_view text);

/// A non-negative or negative whole number, nothing else around it; none where `text` is anything else or out of range.
std::optional<int64_t> parse_int(std::string_view text);

/// Names with commas between: all of them where they fit a line, else the first and the last.
std::string shortened(std::vector<std::string> names);

}  // namespace trainyard
