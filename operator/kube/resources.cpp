#include "kube/resources.h"

#include <fmt/format.h>

namespace trainyard::kube {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c))
      encoded.push_back(c);
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  // A name of dots alone would be taken for a step up the path.
  if (encoded == "." || encoded == "..") return encoded == "." ? "%2E" : "%2E%2E";
  return encoded;
}

std::string api_version(const Resource& resource) {
  return *resource.group == '\0' ? resource.version : fmt::format("{}/{}", resource.group, resource.version);
}

std::string collection_path(const Resource& resource, std::string_view ns) {
  const std::string root = fmt::format("{}/{}", *resource.group == '\0' ? "/api" : "/apis", api_version(resource));
  if (ns.empty()) return fmt::format("{}/{}", root, resource.plural);
  return fmt::format("{}/namespaces/{}/{}", root, percent_encoded(ns), resource.plural);
}

std::string object_path(const Resource& resource, std::string_view ns, std::string_view name,
                        std::string_view subresource) {
  std::string path = fmt::format("{}/{}", collection_path(resource, ns), percent_encoded(name));
  if (!subresource.empty()) path += fmt::format("/{}", subresource);
  return path;
}

std::string with_query(std::string path, const Query& query) {
  char separator = path.find('?') == path.npos ? '?' : '&';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    path += fmt::format("{}{}={}", separator, name, percent_encoded(value));
    separator = '&';
  }
  return path;
}

}  // namespace trainyard::kube
