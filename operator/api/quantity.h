#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace trainyard::api {

/// An amount of a resource as Kubernetes writes it ("500m", "1536Mi", "8", "1e3"), exact to a billionth: what is finer
/// is rounded away from zero, what is beyond 2^63 - 1 is cut down to that, as Kubernetes does. Sums may grow beyond.
class Quantity {
 public:
  Quantity() = default;  ///< zero
  [[nodiscard]] static std::optional<Quantity> parse(std::string_view text);
  /// The quantity that a text or a number says.
  [[nodiscard]] static std::optional<Quantity> parse_json(const Json& json);

  /// The sum is written in the way of the first that is not zero.
  Quantity& operator+=(const Quantity& other);
  [[nodiscard]] friend Quantity operator+(Quantity one, const Quantity& other) { return one += other; }

  /// Amounts are compared: 1Gi and 1024Mi are equal.
  [[nodiscard]] friend bool operator==(const Quantity& a, const Quantity& b) { return a.nano_ == b.nano_; }
  [[nodiscard]] friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.nano_ < b.nano_   ? std::strong_ordering::less
           : a.nano_ > b.nano_ ? std::strong_ordering::greater
                               : std::strong_ordering::equal;
  }

  /// The canonical form: a whole number before the largest unit that allows one. Binary units are given up for decimal
  /// ones below 1024 and where there is a fraction, so that nothing is rounded.
  [[nodiscard]] std::string text() const;
  /// The nearest double.
  [[nodiscard]] double value() const { return static_cast<double>(nano_) / 1e9; }

 private:
  enum class Form { Decimal, Binary, Exponent };
  __extension__ using Wide = __int128;

  [[nodiscard]] std::string binary_text() const;  ///< of a whole number

  Wide nano_ = 0;
  Form form_ = Form::Decimal;
};

/// Quantities by name: cpu, memory, nvidia.com/gpu.
using Resources = std::map<std::string, Quantity>;

}  // namespace trainyard::api
