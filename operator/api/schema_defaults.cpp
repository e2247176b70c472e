#include "api/schema_defaults.h"

namespace trainyard::api {
namespace {

void add_absent(Json& object, const Json& schema) {
  const Json* const properties = object_at(schema, "/properties");
  if (!properties) return;
  for (const auto& [key, field] : properties->items())
    if (const auto otherwise = field.find("default"); otherwise != field.end() && !object.contains(key))
      object[key] = *otherwise;
}

/// Gives a null that may not be one the default. True where there is none.
bool is_still_null(Json& value, const Json& schema) {
  if (!value.is_null() || flag_at(schema, "/nullable")) return false;
  const Json* const otherwise = find(schema, "/default");
  if (otherwise) value = *otherwise;
  return !otherwise;
}

void apply_to_fields(Json& object, const Json& schema) {
  add_absent(object, schema);
  for (auto field = object.begin(); field != object.end();) {
    const Json* const known = schema_of_field(field.key(), schema);
    if (known && is_still_null(*field, *known)) {
      field = object.erase(field);
      continue;
    }
    if (known) apply_defaults(*field, *known);
    ++field;
  }
}

}  // namespace

void apply_defaults(Json& value, const Json& schema) {
  if (value.is_object()) apply_to_fields(value, schema);
  const Json* const items = object_at(schema, "/items");
  if (!value.is_array() || !items) return;
  for (Json& item : value)
    if (!is_still_null(item, *items)) apply_defaults(item, *items);
}

const Json* schema_of_field(const std::string& key, const Json& schema) {
  if (const Json* const properties = object_at(schema, "/properties"))
    if (const auto known = properties->find(key); known != properties->end()) return &*known;
  return object_at(schema, "/additionalProperties");
}

const Json& metadata_schema() {
  // A label's null is an empty text to the API server, whose own types have it so.
  static const Json schema = Json::parse(R"json({"type": "object", "properties": {
    "name": {"type": "string"}, "generateName": {"type": "string"}, "namespace": {"type": "string"},
    "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
    "annotations": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
    "finalizers": {"type": "array", "items": {"type": "string"}},
    "ownerReferences": {"type": "array", "items": {"type": "object"}},
    "managedFields": {"type": "array", "items": {"type": "object"}},
    "creationTimestamp": {"type": "string"}, "deletionTimestamp": {"type": "string"},
    "deletionGracePeriodSeconds": {"type": "integer"}, "generation": {"type": "integer"},
    "resourceVersion": {"type": "string"}, "selfLink": {"type": "string"}, "uid": {"type": "string"}}})json");
  return schema;
}

}  // namespace trainyard::api
