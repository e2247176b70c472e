#include "comm/flight_record.h"

#include <algorithm>

#include "base/signal_text.h"

namespace trainyard::comm {
namespace {

/// Cut at the end of a character of UTF-8, zero behind it.
template <size_t Size>
void keep(std::array<char, Size>& to, std::string_view text) {
  size_t size = std::min(text.size(), Size - 1);
  while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  to.fill('\0');
  std::ranges::copy(text.substr(0, size), to.begin());
}

void write_time(SignalText& out, const char* key, int64_t nanoseconds) {
  out.text(",\"").text(key).text("\":");
  if (nanoseconds == 0)
    out.text("null");
  else
    out.seconds(nanoseconds);
}

}  // namespace

uint64_t FlightRecord::issued(std::string_view name, std::string_view label, std::string_view group,
                              size_t bytes) noexcept {
  const uint64_t number = ++last_;
  Entry& entry = entry_of(number);
  entry.number = 0;
  keep(entry.name, name);
  keep(entry.label, label);
  keep(entry.group, group);
  entry.bytes = bytes;
  entry.issued = nanoseconds_since_1970();
  entry.begun = 0;
  entry.ended = 0;
  entry.number = number;
  return number;
}

void FlightRecord::begun(uint64_t number) noexcept {
  if (Entry& entry = entry_of(number); entry.number == number) entry.begun = nanoseconds_since_1970();
}

void FlightRecord::ended(uint64_t number) noexcept {
  if (Entry& entry = entry_of(number); entry.number == number) entry.ended = nanoseconds_since_1970();
}

void FlightRecord::write(int fd) const noexcept {
  SignalText out(fd);
  out.text("[");
  const uint64_t last = last_;
  const char* before = "\n";
  for (uint64_t number = last > kKept ? last - kKept + 1 : 1; number <= last; ++number) {
    const Entry& entry = entries_[number % kKept];
    if (entry.number != number) continue;
    out.text(before).text("{\"number\":").number(static_cast<int64_t>(number));
    out.text(",\"collective\":").quoted(entry.name.data()).text(",\"label\":").quoted(entry.label.data());
    out.text(",\"group\":").quoted(entry.group.data());
    out.text(",\"bytes\":").number(static_cast<int64_t>(entry.bytes));
    write_time(out, "issued", entry.issued);
    write_time(out, "begun", entry.begun);
    write_time(out, "ended", entry.ended);
    out.text("}");
    before = ",\n";
  }
  out.text("]");
}

}  // namespace trainyard::comm
