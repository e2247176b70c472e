#include "base/signal_text.h"

#include <time.h>

#include "common/write_all.h"

namespace trainyard {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

void SignalText::put(char c) noexcept {
  if (size_ == buffer_.size()) flush();
  buffer_[size_++] = c;
}

void SignalText::flush() noexcept {
  static_cast<void>(write_all(fd_, std::string_view(buffer_.data(), size_)));
  size_ = 0;
}

SignalText& SignalText::text(std::string_view text) noexcept {
  for (const char c : text) put(c);
  return *this;
}

SignalText& SignalText::number(int64_t number) noexcept {
  std::array<char, 20> digits{};
  size_t count = 0;
  auto rest = number < 0 ? uint64_t{0} - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  do digits[count++] = static_cast<char>('0' + rest % 10);
  while ((rest /= 10) > 0);
  if (number < 0) put('-');
  while (count > 0) put(digits[--count]);
  return *this;
}

SignalText& SignalText::quoted(std::string_view text) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  put('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') put('\\');
    if (byte >= 0x20) {
      put(c);
    } else {
      this->text("\\u00");
      put(kDigits[byte >> 4]);
      put(kDigits[byte & 15]);
    }
  }
  put('"');
  return *this;
}

SignalText& SignalText::seconds(int64_t nanoseconds) noexcept {
  number(nanoseconds / kSecond);
  put('.');
  int64_t rest = nanoseconds % kSecond / 1000;
  for (int64_t unit = 100'000; unit > 0; unit /= 10) put(static_cast<char>('0' + rest / unit % 10));
  return *this;
}

int64_t nanoseconds_since_1970() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace trainyard
