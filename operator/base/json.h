#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard {

using Json = nlohmann::json;

/// The value at a path of keys ("/status/phase", a JSON pointer); null where nothing is there. Borrowed from `json`.
[[nodiscard]] const Json* find(const Json& json, std::string_view pointer);
/// What the API may leave out: `fallback` where nothing is there or it is of another type.
[[nodiscard]] std::string text_at(const Json& json, std::string_view pointer, std::string_view fallback = "");
[[nodiscard]] std::optional<int64_t> int_at(const Json& json, std::string_view pointer);
[[nodiscard]] bool flag_at(const Json& json, std::string_view pointer);
/// Null where nothing is there or it is of another type.
[[nodiscard]] const Json* list_at(const Json& json, std::string_view pointer);
[[nodiscard]] const Json* object_at(const Json& json, std::string_view pointer);

/// The RFC 7386 merge patch that makes `to` of `from`; an empty object where they are equal.
[[nodiscard]] Json merge_patch_between(const Json& from, const Json& to);

/// JSON from outside: none where it is no JSON, or nested so deeply that code which walks it could run out of stack.
[[nodiscard]] std::optional<Json> parse_json(std::string_view text);
/// One line, whatever bytes are in it: what is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::string dump(const Json& json);

}  // namespace trainyard
