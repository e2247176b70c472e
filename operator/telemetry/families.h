#pragma once

#include <span>
#include <string_view>

// Every metric that the operator has, by its name: docs/metrics.md is held against this list.
namespace trainyard::telemetry {

enum class Type { Counter, Gauge, Histogram };

struct Family {
  std::string_view name;
  Type type;
  std::string_view labels;  ///< separated by ", "
  std::string_view help;
};

[[nodiscard]] std::span<const Family> families();
/// Throws std::logic_error for a name that is not in the list.
[[nodiscard]] const Family& family(std::string_view name);

}  // namespace trainyard::telemetry
