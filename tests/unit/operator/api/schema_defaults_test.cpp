#include "api/schema_defaults.h"

#include <catch2/catch.hpp>

#include "api/crd.h"

namespace trainyard::api {
namespace {

Json with_defaults(Json value, const Json& schema) {
  apply_defaults(value, schema);
  return value;
}

/// Calls `visit` with the schema of every object below `schema`, and its path.
template <typename Visit>
void walk_objects(const Json& schema, const std::string& path, const Visit& visit) {
  if (schema.contains("properties")) visit(schema, path);
  if (const Json* const properties = object_at(schema, "/properties"))
    for (const auto& [name, property] : properties->items()) walk_objects(property, path + "." + name, visit);
  for (const char* const inner : {"/items", "/additionalProperties"})
    if (const Json* const found = object_at(schema, inner)) walk_objects(*found, path + inner, visit);
}

}  // namespace

TEST_CASE("apply_defaults: nulls and absent fields are what the API server makes of them", "[api]") {
  const Json schema = Json::parse(R"({"type": "object", "properties": {
    "plain": {"type": "string"}, "usual": {"type": "string", "default": "u"}, "nullable": {"type": "string", "nullable": true},
    "both": {"type": "string", "nullable": true, "default": "b"},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "filled": {"type": "object", "additionalProperties": {"type": "string", "default": "f"}},
    "inner": {"type": "object", "properties": {"usual": {"type": "integer", "default": 7}}},
    "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
    "texts": {"type": "array", "items": {"type": "string"}}}})");
  struct Row {
    const char *situation, *given, *becomes;
  };
  const auto row = GENERATE(values<Row>({
      {"absent with a default", R"({})", R"({"usual": "u", "both": "b"})"},
      {"null", R"({"plain": null})", R"({"usual": "u", "both": "b"})"},
      {"null with a default", R"({"usual": null})", R"({"usual": "u", "both": "b"})"},
      {"null that may be", R"({"nullable": null, "both": null})", R"({"nullable": null, "usual": "u", "both": null})"},
      {"unknown null", R"({"other": null})", R"({"other": null, "usual": "u", "both": "b"})"},
      {"null in a map", R"({"map": {"a": null, "b": "c"}})", R"({"map": {"b": "c"}, "usual": "u", "both": "b"})"},
      {"null in a map with a default", R"({"filled": {"a": null}})",
       R"({"filled": {"a": "f"}, "usual": "u", "both": "b"})"},
      {"a default in an object that is there", R"({"inner": {}})",
       R"({"inner": {"usual": 7}, "usual": "u", "both": "b"})"},
      {"an object that is null", R"({"inner": null})", R"({"usual": "u", "both": "b"})"},
      {"null of an object in a list", R"({"list": [{"a": null}, {"a": "b"}]})",
       R"({"list": [{}, {"a": "b"}], "usual": "u", "both": "b"})"},
      {"null in a list", R"({"list": [null], "texts": ["a", null]})",
       R"({"list": [null], "texts": ["a", null], "usual": "u", "both": "b"})"},
      {"another type", R"([1, null])", R"([1, null])"},
  }));
  CAPTURE(row.situation);
  CHECK(with_defaults(Json::parse(row.given), schema) == Json::parse(row.becomes));
}

TEST_CASE("apply_defaults: no field of a PyTorchJob stays null", "[api]") {
  size_t fields = 0;
  walk_objects(job_schema(), "", [&](const Json& schema, const std::string& path) {
    Json given = Json::object();
    for (const auto& [name, property] : schema.at("properties").items()) given[name] = nullptr, ++fields;
    CAPTURE(path);
    const Json left = with_defaults(given, schema);
    for (const auto& [name, property] : schema.at("properties").items())
      CHECK((property.contains("default") ? left.at(name) == property.at("default") : !left.contains(name)));
  });
  CHECK(fields > 500);
}

TEST_CASE("metadata: a label that is null is an empty text", "[api]") {
  CHECK(with_defaults(Json::parse(R"({"name": null, "labels": {"a": null}, "annotations": null})"), metadata_schema()) ==
        Json::parse(R"({"labels": {"a": ""}})"));
}

}  // namespace trainyard::api
