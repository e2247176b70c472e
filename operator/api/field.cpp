#include "api/field.h"

#include <fmt/format.h>

#include <cmath>

#include "api/parse_error.h"

namespace trainyard::api {

Field Field::operator[](std::string_view key) const& {
  if (!is_there()) return {nullptr, this, key, std::nullopt};
  if (!value_->is_object()) refuse("an object");
  const auto found = value_->find(key);
  return {found == value_->end() ? nullptr : &*found, this, key, std::nullopt};
}

std::string Field::path() const {
  if (!parent_) return "";
  const std::string above = parent_->path();
  if (index_) return fmt::format("{}[{}]", above, *index_);
  return above.empty() ? std::string(key_) : fmt::format("{}.{}", above, key_);
}

std::string Field::text() const {
  return optional_text().value_or("");
}

std::optional<std::string> Field::optional_text() const {
  if (!is_there()) return std::nullopt;
  if (!value_->is_string()) refuse("a text");
  return value_->get<std::string>();
}

bool Field::flag() const {
  if (!is_there()) return false;
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::optional<int64_t> Field::number_between(int64_t low, int64_t high) const {
  if (!is_there()) return std::nullopt;
  const auto number = whole_number_of(*value_);
  if (!number || *number < low || *number > high) refuse(fmt::format("a whole number from {} to {}", low, high));
  return number;
}

std::optional<int> Field::whole_number() const {
  const auto number = number_between(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<int64_t> Field::long_whole_number() const {
  return number_between(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

const Json& Field::object() const {
  static const Json nothing = Json::object();
  if (!is_there()) return nothing;
  if (!value_->is_object()) refuse("an object");
  return *value_;
}

const Json& Field::list() const {
  static const Json nothing = Json::array();
  if (!is_there()) return nothing;
  if (!value_->is_array()) refuse("a list");
  return *value_;
}

Json Field::object_or_null() const {
  return is_there() ? object() : Json(nullptr);
}

Json Field::list_or_null() const {
  return is_there() ? list() : Json(nullptr);
}

void Field::refuse(std::string_view allowed) const {
  const std::string where = path();
  throw ParseError(fmt::format("{} must be {}, but is {}", where.empty() ? "the job" : where, allowed,
                               value_ ? shown(*value_) : "absent"));
}

std::string shown(const Json& value) {
  constexpr size_t kLongest = 120;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (!value.is_string()) return dump(value);
  const std::string& text = value.get_ref<const std::string&>();
  return dump(text.size() <= kLongest ? text : text.substr(0, kLongest) + "…");
}

const Json& list_or_empty(const Json& object, const std::string& pointer) {
  static const Json nothing = Json::array();
  const Json* const found = list_at(object, pointer);
  return found ? *found : nothing;
}

std::optional<int64_t> whole_number_of(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kExact = 9007199254740992.0;  // above 2^53 a double is no longer every whole number
  if (std::trunc(number) != number || std::abs(number) > kExact) return std::nullopt;
  return static_cast<int64_t>(number);
}

}  // namespace trainyard::api
