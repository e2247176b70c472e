#include "base/json.h"

namespace trainyard {

const Json* find(const Json& json, std::string_view pointer) {
  const Json::json_pointer path{std::string(pointer)};
  return json.contains(path) ? &json.at(path) : nullptr;
}

std::string text_at(const Json& json, std::string_view pointer, std::string_view fallback) {
  const Json* const found = find(json, pointer);
  return std::string(found && found->is_string() ? found->get_ref<const std::string&>() : fallback);
}

std::optional<int64_t> int_at(const Json& json, std::string_view pointer) {
  const Json* const found = find(json, pointer);
  return found && found->is_number_integer() ? std::optional(found->get<int64_t>()) : std::nullopt;
}

Json merge_patch_between(const Json& from, const Json& to) {
  Json patch = Json::object();
  for (const auto& [key, value] : from.items())
    if (!to.contains(key)) patch[key] = nullptr;
  for (const auto& [key, value] : to.items()) {
    const auto old = from.find(key);
    if (old == from.end() || !old->is_object() || !value.is_object()) {
      if (old == from.end() || *old != value) patch[key] = value;
    } else if (Json inner = merge_patch_between(*old, value); !inner.empty()) {
      patch[key] = std::move(inner);
    }
  }
  return patch;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trainyard
