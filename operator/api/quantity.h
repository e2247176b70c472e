#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace trainyard::api {

/// An amount of a resource as Kubernetes writes it: "500m", "1.5Gi", "2e3", 4. Exact: a whole number of billionths, up
/// to 2^63 of the unit.
class Quantity {
 public:
  Quantity() = default;  ///< zero

  /// None where `text` is no quantity, is finer than a billionth, or is too big.
  [[nodiscard]] static std::optional<Quantity> parse(std::string_view text);
  /// Of a string or a number.
  [[nodiscard]] static std::optional<Quantity> parse_json(const Json& json);

  /// As Kubernetes itself would write it: the biggest suffix that needs no fraction, binary (Ki, Mi, …) where it was
  /// given so.
  [[nodiscard]] std::string text() const;

  /// The sum is written as the left side, or as the right where the left is zero.
  Quantity& operator+=(const Quantity& other);
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.billionths_ <=> b.billionths_;
  }
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.billionths_ == b.billionths_; }

 private:
  __extension__ using Wide = __int128;
  Wide billionths_ = 0;
  bool is_binary_ = false;
};

/// By name: cpu, memory, nvidia.com/gpu.
using Resources = std::map<std::string, Quantity>;

}  // namespace trainyard::api
