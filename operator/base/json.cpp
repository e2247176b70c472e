#include "base/json.h"

#include <algorithm>
#include <charconv>

namespace trainyard {

namespace {

/// What a part of a pointer stands for: "~1" is '/', "~0" is '~'.
std::string unescaped(std::string_view part) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    const bool is_escape = part[i] == '~' && i + 1 < part.size();
    text += is_escape ? (part[++i] == '1' ? '/' : '~') : part[i];
  }
  return text;
}

const Json* child(const Json& json, std::string_view part) {
  if (json.is_object()) {
    const auto found = part.find('~') == part.npos ? json.find(part) : json.find(unescaped(part));
    return found == json.end() ? nullptr : &*found;
  }
  size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool is_index = json.is_array() && error == std::errc() && end == part.data() + part.size();
  return is_index && index < json.size() ? &json[index] : nullptr;
}

/// Brackets that are open at once, at most; what is within texts does not count.
size_t nesting_of(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text && c == '\\')
      ++i;
    else if (c == '"')
      in_text = !in_text;
    else if (!in_text && (c == '{' || c == '['))
      deepest = std::max(deepest, ++depth);
    else if (!in_text && (c == '}' || c == ']') && depth > 0)
      --depth;
  }
  return deepest;
}

}  // namespace

// Not by nlohmann's json_pointer, which allocates for each part: a list of 10,000 pods asks half a million times.
const Json* find(const Json& json, std::string_view pointer) {
  const Json* found = &json;
  while (found && !pointer.empty()) {
    pointer.remove_prefix(1);  // the '/'
    const std::string_view part = pointer.substr(0, pointer.find('/'));
    found = child(*found, part);
    pointer.remove_prefix(part.size());
  }
  return found;
}

std::string text_at(const Json& json, std::string_view pointer, std::string_view fallback) {
  const Json* const found = find(json, pointer);
  return std::string(found && found->is_string() ? found->get_ref<const std::string&>() : fallback);
}

std::optional<int64_t> int_at(const Json& json, std::string_view pointer) {
  const Json* const found = find(json, pointer);
  return found && found->is_number_integer() ? std::optional(found->get<int64_t>()) : std::nullopt;
}

bool flag_at(const Json& json, std::string_view pointer) {
  const Json* const found = find(json, pointer);
  return found && *found == true;
}

const Json* list_at(const Json& json, std::string_view pointer) {
  const Json* const found = find(json, pointer);
  return found && found->is_array() ? found : nullptr;
}

const Json* object_at(const Json& json, std::string_view pointer) {
  const Json* const found = find(json, pointer);
  return found && found->is_object() ? found : nullptr;
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

std::optional<Json> parse_json(std::string_view text) {
  constexpr size_t kDeepest = 500;
  if (nesting_of(text) > kDeepest) return std::nullopt;
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? std::nullopt : std::optional(std::move(json));
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trainyard
