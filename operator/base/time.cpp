#include "base/time.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>

namespace trainyard {
namespace {

using namespace std::chrono;

std::string calendar(TimePoint time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(system_clock::to_time_t(floor<seconds>(time))));
}

/// Takes `digits` digits from the front of `text`.
std::optional<int> take_number(std::string_view& text, size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits || text.front() == '-') return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<microseconds> take_fraction(std::string_view& text) {
  if (!take(text, '.')) return microseconds(0);
  int64_t micros = 0, scale = 100'000;
  size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits, scale /= 10)
    micros += (text[digits] - '0') * scale;
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return microseconds(micros);
}

std::optional<minutes> take_offset(std::string_view& text) {
  if (take(text, 'Z') || take(text, 'z')) return minutes(0);
  const bool is_west = take(text, '-');
  if (!is_west && !take(text, '+')) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute) return std::nullopt;
  const minutes offset = hours(*hour) + minutes(*minute);
  return is_west ? -offset : offset;
}

}  // namespace

std::string format_time(TimePoint time) {
  return calendar(time) + "Z";
}

std::string format_micro_time(TimePoint time) {
  const auto micros = duration_cast<microseconds>(time - floor<seconds>(time)).count();
  return fmt::format("{}.{:06}Z", calendar(time), micros);
}

std::optional<TimePoint> parse_time(std::string_view text) {
  const auto year = take_number(text, 4);
  if (!year || !take(text, '-')) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day || !(take(text, 'T') || take(text, 't'))) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || !take(text, ':')) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second) return std::nullopt;
  const auto fraction = take_fraction(text);
  const auto offset = fraction ? take_offset(text) : std::nullopt;
  const year_month_day date(std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                            std::chrono::day(static_cast<unsigned>(*day)));
  const bool fits = *year >= 1678 && *year <= 2261;  // into 64 bits of nanoseconds
  if (!offset || !fits || !text.empty() || !date.ok() || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  return sys_days(date) + hours(*hour) + minutes(*minute) + seconds(*second) + *fraction - *offset;
}

std::string human_duration(milliseconds duration) {
  if (duration < seconds(1)) return fmt::format("{} ms", duration.count());
  const auto whole = floor<seconds>(duration);
  if (whole < minutes(2)) return fmt::format("{} s", whole.count());
  if (whole < hours(2)) {
    const auto rest = whole % minutes(1);
    const auto text = fmt::format("{} min", floor<minutes>(whole).count());
    return rest.count() == 0 ? text : fmt::format("{} {} s", text, rest.count());
  }
  const auto rest = floor<minutes>(whole % hours(1));
  const auto text = fmt::format("{} h", floor<hours>(whole).count());
  return rest.count() == 0 ? text : fmt::format("{} {} min", text, rest.count());
}

}  // namespace trainyard
