#include "api/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace trainyard::api {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kUnit = 1'000'000'000;
constexpr Wide kLargest = (Wide{1} << 63) * kUnit;

struct Suffix {
  std::string_view text;
  Wide billionths;  ///< that one of it has
};

// Biggest first.
constexpr std::array kBinary = {Suffix{"Ei", kUnit << 60}, Suffix{"Pi", kUnit << 50}, Suffix{"Ti", kUnit << 40},
                                Suffix{"Gi", kUnit << 30}, Suffix{"Mi", kUnit << 20}, Suffix{"Ki", kUnit << 10}};
constexpr std::array kDecimal = {Suffix{"E", kUnit* kUnit* kUnit},
                                 Suffix{"P", kUnit* kUnit * 1'000'000},
                                 Suffix{"T", kUnit* kUnit * 1'000},
                                 Suffix{"G", kUnit* kUnit},
                                 Suffix{"M", kUnit * 1'000'000},
                                 Suffix{"k", kUnit * 1'000},
                                 Suffix{"", kUnit},
                                 Suffix{"m", 1'000'000},
                                 Suffix{"u", 1'000},
                                 Suffix{"n", 1}};

/// Digits with at most one point: the number without the point, and how many digits stood behind it.
struct Digits {
  Wide number = 0;
  int behind_point = 0;
};

std::optional<Digits> take_digits(std::string_view& text) {
  Digits digits;
  bool is_behind = false, is_any = false;
  size_t used = 0;
  for (; used < text.size(); ++used) {
    const char c = text[used];
    if (c == '.' && !is_behind) {
      is_behind = true;
    } else if (c >= '0' && c <= '9') {
      if (digits.number > kLargest) return std::nullopt;
      digits.number = digits.number * 10 + (c - '0');
      digits.behind_point += is_behind;
      is_any = true;
    } else {
      break;
    }
  }
  text.remove_prefix(used);
  return is_any ? std::optional(digits) : std::nullopt;
}

/// What stands behind the digits, in billionths; none where it is no suffix.
std::optional<Suffix> suffix_of(std::string_view text) {
  for (const Suffix& suffix : kBinary)
    if (suffix.text == text) return suffix;
  for (const Suffix& suffix : kDecimal)
    if (suffix.text == text) return suffix;
  if (text.size() < 2 || (text.front() != 'e' && text.front() != 'E')) return std::nullopt;
  text.remove_prefix(text[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc() || end != text.data() + text.size() || exponent < -9 || exponent > 18) return std::nullopt;
  Wide billionths = 1;
  for (int i = -9; i < exponent; ++i) billionths *= 10;
  return Suffix{"e", billionths};
}

std::string decimal_text(Wide number) {
  std::string text;
  const bool is_negative = number < 0;
  if (is_negative) number = -number;
  do text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
  while ((number /= 10) > 0);
  return is_negative ? "-" + text : text;
}

}  // namespace

std::optional<Quantity> Quantity::parse(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const auto digits = take_digits(text);
  const auto suffix = digits ? suffix_of(text) : std::nullopt;
  if (!suffix) return std::nullopt;
  // Most of the fraction's tens go out of the suffix first, so that nothing overflows that fits in the end.
  Wide number = digits->number, scale = suffix->billionths;
  for (int i = 0; i < digits->behind_point; ++i) {
    if (scale % 10 == 0) {
      scale /= 10;
    } else if (number % 10 == 0) {
      number /= 10;
    } else {
      return std::nullopt;
    }
  }
  if (number > kLargest / scale) return std::nullopt;
  Quantity quantity;
  quantity.billionths_ = number * scale * (is_negative ? -1 : 1);
  quantity.is_binary_ = suffix->text.ends_with('i');
  return quantity;
}

std::optional<Quantity> Quantity::parse_json(const Json& json) {
  if (json.is_string()) return parse(std::string_view(json.get_ref<const std::string&>()));
  return json.is_number() ? parse(std::string_view(json.dump())) : std::nullopt;
}

std::string Quantity::text() const {
  if (billionths_ == 0) return "0";
  if (is_binary_ && billionths_ % kUnit == 0)
    for (const Suffix& suffix : kBinary)
      if (billionths_ % suffix.billionths == 0)
        return decimal_text(billionths_ / suffix.billionths) + std::string(suffix.text);
  if (is_binary_ && billionths_ % kUnit == 0) return decimal_text(billionths_ / kUnit);
  for (const Suffix& suffix : kDecimal)
    if (billionths_ % suffix.billionths == 0)
      return decimal_text(billionths_ / suffix.billionths) + std::string(suffix.text);
  return decimal_text(billionths_) + "n";
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (billionths_ == 0) is_binary_ = other.is_binary_;
  billionths_ += other.billionths_;
  return *this;
}

}  // namespace trainyard::api
