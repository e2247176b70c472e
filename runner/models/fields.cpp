#include "models/fields.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::models {

int64_t Fields::size(const char* key) const {
  if (!has(key)) fail(key, "is missing; a whole number above 0 is needed");
  return whole(key, 1);
}

int64_t Fields::layers(const char* key) const {
  constexpr int64_t kMost = 4096;
  const int64_t layers = size(key);
  if (layers > kMost) fail(key, fmt::format("is {}; {} layers are the most", layers, kMost));
  return layers;
}

int64_t Fields::count(const char* key, int64_t otherwise) const {
  return contains(key) ? whole(key, 0) : otherwise;
}

int64_t Fields::whole(const char* key, int64_t least) const {
  constexpr int64_t kLargest = int64_t{1} << 31;
  const nlohmann::json& value = object_.at(key);
  if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > kLargest)
    fail(key, fmt::format("is {}; a whole number from {} to {} is needed", value.dump(), least, kLargest));
  return value.get<int64_t>();
}

double Fields::number(const char* key) const {
  if (!contains(key)) fail(key, "is missing; a number above 0 is needed");
  const nlohmann::json& value = object_.at(key);
  if (!value.is_number() || value.get<double>() <= 0)
    fail(key, fmt::format("is {}; a number above 0 is needed", value.dump()));
  return value.get<double>();
}

double Fields::rate(const char* key, double otherwise) const {
  if (!contains(key)) return otherwise;
  const nlohmann::json& value = object_.at(key);
  if (!value.is_number() || value.get<double>() < 0 || value.get<double>() >= 1)
    fail(key, fmt::format("is {}; a number from 0 to below 1 is needed", value.dump()));
  return value.get<double>();
}

std::optional<int64_t> Fields::row(const char* key, int64_t count) const {
  if (!has(key)) return std::nullopt;
  const nlohmann::json& value = object_.at(key);
  if (!value.is_number_integer() || value < -count || value >= count)
    fail(key, fmt::format("is {}; a row from 0 to {} is needed, or from -1 to {}, counted from the end", value.dump(),
                          count - 1, -count));
  return value.get<int64_t>();
}

bool Fields::flag(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  if (!object_.at(key).is_boolean()) fail(key, fmt::format("is {}; true or false is needed", object_.at(key).dump()));
  return object_.at(key).get<bool>();
}

std::string Fields::text(const char* key, const std::string& otherwise) const {
  if (!contains(key)) return otherwise;
  if (!object_.at(key).is_string()) fail(key, fmt::format("is {}; a string is needed", object_.at(key).dump()));
  return object_.at(key).get<std::string>();
}

Fields Fields::object(const char* key) const {
  if (!object_.at(key).is_object()) fail(key, "must be an object");
  return {object_.at(key), where_};
}

void Fields::require(const char* key, const nlohmann::json& expected, const std::string& why) const {
  if (has(key) && object_.at(key) != expected) fail(key, fmt::format("is {}; {}", object_.at(key).dump(), why));
}

void Fields::fail(const char* key, const std::string& what) const {
  throw InputError(fmt::format("{}: {} {}", where_, key, what));
}

}  // namespace trainyard::models
