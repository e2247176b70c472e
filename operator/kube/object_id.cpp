#include "kube/object_id.h"

#include <charconv>

namespace trainyard::kube {

std::string key_of(std::string_view ns, std::string_view name) {
  std::string key;
  key.reserve(ns.size() + 1 + name.size());
  return key.append(ns).append("/").append(name);
}

uint64_t parse_version(std::string_view text) {
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size() ? version : 0;
}

ObjectId id_of(const Json& object) {
  return {.key = key_of(text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name")),
          .uid = text_at(object, "/metadata/uid"),
          .version = parse_version(text_at(object, "/metadata/resourceVersion"))};
}

}  // namespace trainyard::kube
