#include "api/quantity.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

namespace trainyard::api {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kNano = 1'000'000'000;
constexpr Wide kMost = static_cast<Wide>(std::numeric_limits<int64_t>::max());
constexpr Wide kWidest = kMost * kNano * kNano;  // where sums end; far from the end of the type
constexpr std::string_view kBinaryUnits = "KMGTPE";
constexpr std::string_view kDecimalUnits = "num kMGTPE";  // 10^-9, 10^-6, … 10^18; the blank has no letter

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

bool take_sign(std::string_view& text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  return is_negative;
}

/// What stands behind the digits: a power of two or one of ten.
struct Unit {
  int binary = 0, decimal = 0;
  bool is_exponent = false;
};

std::optional<Unit> unit_of(std::string_view text) {
  if (text.empty()) return Unit{};
  const size_t binary = kBinaryUnits.find(text[0]);
  if (text.size() == 2 && text[1] == 'i' && binary != text.npos)
    return Unit{.binary = 10 * (static_cast<int>(binary) + 1)};
  const size_t decimal = text[0] == ' ' ? text.npos : kDecimalUnits.find(text[0]);
  if (text.size() == 1 && decimal != text.npos) return Unit{.decimal = 3 * static_cast<int>(decimal) - 9};
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool is_negative = take_sign(text);
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (text.empty() || text[0] == '-' || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  exponent = std::min(exponent, 1000);  // beyond any amount: it is cut down or rounded all the same
  return Unit{.decimal = is_negative ? -exponent : exponent, .is_exponent = true};
}

/// Moves the point between the digits by a power of ten.
void shift(std::string& whole, std::string& fraction, int places) {
  for (; places > 0; --places) {
    whole += fraction.empty() ? '0' : fraction.front();
    if (!fraction.empty()) fraction.erase(0, 1);
  }
  for (; places < 0; ++places) {
    fraction.insert(fraction.begin(), whole.empty() ? '0' : whole.back());
    if (!whole.empty()) whole.pop_back();
  }
}

/// The whole part in nanos, cut down to the most there is.
Wide whole_nanos(std::string_view digits, Wide factor) {
  Wide value = 0;
  for (const char digit : digits) {
    value = value * 10 + (digit - '0');
    if (value > kMost) return kMost * kNano;
  }
  return std::min(value * factor, kMost) * kNano;
}

/// The part behind the point in nanos, what is finer rounded up.
Wide fraction_nanos(std::string_view digits, Wide factor) {
  constexpr size_t kExact = 18;
  constexpr Wide kScale = kNano * kNano;
  Wide value = 0;
  for (size_t i = 0; i < kExact; ++i) value = value * 10 + (i < digits.size() ? digits[i] - '0' : 0);
  const bool is_more = digits.size() > kExact && digits.substr(kExact).find_first_not_of('0') != digits.npos;
  const Wide scaled = value * factor;  // < 10^18 * 2^60
  const Wide divisor = kScale / kNano;
  return scaled / divisor + (scaled % divisor != 0 || is_more ? 1 : 0);
}

std::string digits_of(Wide value) {
  const bool is_negative = value < 0;
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(is_negative ? -(value % 10) : value % 10));
    value /= 10;
  } while (value != 0);
  if (is_negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

std::optional<Quantity> Quantity::parse(std::string_view text) {
  constexpr size_t kLongest = 1000;
  if (text.size() > kLongest) return std::nullopt;
  const bool is_negative = take_sign(text);
  std::string whole(take_digits(text)), fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  const auto unit = unit_of(text);
  if ((whole.empty() && fraction.empty()) || !unit) return std::nullopt;
  shift(whole, fraction, unit->decimal);
  const Wide factor = static_cast<Wide>(1) << unit->binary;
  Quantity quantity;
  quantity.nano_ = std::min(whole_nanos(whole, factor) + fraction_nanos(fraction, factor), kMost * kNano);
  if (is_negative) quantity.nano_ = -quantity.nano_;
  quantity.form_ = unit->is_exponent ? Form::Exponent : unit->binary > 0 ? Form::Binary : Form::Decimal;
  return quantity;
}

std::optional<Quantity> Quantity::parse_json(const Json& json) {
  if (json.is_string()) return parse(json.get_ref<const std::string&>());
  return json.is_number() ? parse(json.dump()) : std::nullopt;
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (nano_ == 0) form_ = other.form_;
  nano_ = std::clamp(nano_ + other.nano_, -kWidest, kWidest);
  return *this;
}

std::string Quantity::binary_text() const {
  Wide value = nano_ / kNano;
  size_t unit = 0;
  for (; unit < kBinaryUnits.size() && value % 1024 == 0; ++unit) value /= 1024;
  return digits_of(value) + (unit == 0 ? std::string() : std::string(1, kBinaryUnits[unit - 1]) + "i");
}

std::string Quantity::text() const {
  constexpr Wide kSmall = 1024 * kNano;
  if (nano_ == 0) return "0";
  const bool is_small = nano_ > -kSmall && nano_ < kSmall;
  if (form_ == Form::Binary && !is_small && nano_ % kNano == 0) return binary_text();
  Wide value = nano_;
  size_t unit = 0;
  for (; unit + 1 < kDecimalUnits.size() && value % 1000 == 0; ++unit) value /= 1000;
  const int exponent = 3 * static_cast<int>(unit) - 9;
  if (exponent == 0) return digits_of(value);
  if (form_ == Form::Exponent) return digits_of(value) + "e" + std::to_string(exponent);
  return digits_of(value) + kDecimalUnits[unit];
}

}  // namespace trainyard::api
