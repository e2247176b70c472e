#include "api/meta.h"

namespace trainyard::api {
namespace {

std::map<std::string, std::string> texts_of(const Json& object, const char* pointer) {
  std::map<std::string, std::string> texts;
  const Json* const found = find(object, pointer);
  if (!found || !found->is_object()) return texts;
  for (const auto& [key, value] : found->items())
    if (value.is_string()) texts[key] = value;
  return texts;
}

std::optional<Controller> controller_of(const Json& object) {
  const Json* const owners = find(object, "/metadata/ownerReferences");
  if (!owners || !owners->is_array()) return std::nullopt;
  for (const Json& owner : *owners) {
    const Json* const flag = find(owner, "/controller");
    if (flag && flag->is_boolean() && flag->get<bool>())
      return Controller{text_at(owner, "/kind"), text_at(owner, "/name"), text_at(owner, "/uid")};
  }
  return std::nullopt;
}

}  // namespace

Meta parse_meta(const Json& object) {
  Meta meta;
  meta.name = text_at(object, "/metadata/name");
  meta.ns = text_at(object, "/metadata/namespace");
  meta.uid = text_at(object, "/metadata/uid");
  meta.resource_version = text_at(object, "/metadata/resourceVersion");
  meta.generation = int_at(object, "/metadata/generation").value_or(0);
  meta.labels = texts_of(object, "/metadata/labels");
  meta.annotations = texts_of(object, "/metadata/annotations");
  meta.controller = controller_of(object);
  meta.created = parse_time(text_at(object, "/metadata/creationTimestamp")).value_or(TimePoint());
  meta.deleted = parse_time(text_at(object, "/metadata/deletionTimestamp"));
  return meta;
}

}  // namespace trainyard::api
