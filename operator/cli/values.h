#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What a flag's value may be. Each answers with what was given and what is allowed; CLI11 names the flag before it.
namespace trainyard::cli {

/// "60s", "1m30s", "500ms", "1.5h", as Go writes durations; a number alone counts as seconds.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

[[nodiscard]] CLI::Validator whole_number(int64_t least, int64_t most = std::numeric_limits<int32_t>::max());
[[nodiscard]] CLI::Validator number_from(double least);
/// Leaves milliseconds in its place.
[[nodiscard]] CLI::Validator duration();
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);
/// A name of an object: labels of lower case letters, digits and '-' with dots between them, or ("label") one of them.
/// The empty text passes where `may_be_empty`.
enum class NameForm { Label, Subdomain };
[[nodiscard]] CLI::Validator object_name(NameForm form, bool may_be_empty = false);
/// http:// or https://, then a host.
[[nodiscard]] CLI::Validator web_address();

}  // namespace trainyard::cli
