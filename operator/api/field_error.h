#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

// These are the API server's messages about a field (apimachinery's util/validation/field). They are pure.
namespace trainyard::api {

/// Takes a violation: its path and its message.
using Refuse = std::function<void(const std::string& path, const std::string& message)>;

[[nodiscard]] std::string invalid(const Json& value, std::string_view rule);
[[nodiscard]] std::string duplicate(const Json& value);
/// `known` stands in the server's order.
[[nodiscard]] std::string unsupported(const Json& value, const std::vector<std::string_view>& known);

/// Refuses what is none of `known`. "" is what has its default.
void check_word(const std::string& word, const std::vector<std::string_view>& known, const std::string& path,
                const Refuse& refuse);

/// This is the rule of a number that has a range.
[[nodiscard]] std::string between(int64_t least, int64_t most);

/// This is the rule of a number that is not 0 and not negative.
inline constexpr const char* kPositive = "must be greater than zero";

}  // namespace trainyard::api
