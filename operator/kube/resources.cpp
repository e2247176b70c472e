#include "kube/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace trainyard::kube {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

const char* verb_of(Method method, bool has_name, bool is_watch) {
  switch (method) {
    case Method::Get:
      return is_watch ? "watch" : has_name ? "get" : "list";
    case Method::Post:
      return "create";
    case Method::Put:
      return "update";
    case Method::Patch:
      return "patch";
    case Method::Delete:
      return has_name ? "delete" : "deletecollection";
  }
  return "";
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

RequestInfo info_of(Method method, std::string_view path) {
  const size_t question = std::min(path.find('?'), path.size());
  const bool is_watch = path.substr(question).find("watch=") != path.npos;
  auto parts = parts_of(path.substr(0, question));
  const auto skip = [&](size_t count) {
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(count, parts.size())));
  };
  skip(!parts.empty() && parts[0] == "apis" ? 3 : 2);
  if (parts.size() > 2 && parts[0] == "namespaces") skip(2);
  RequestInfo info{verb_of(method, parts.size() > 1, is_watch), parts.empty() ? "" : std::string(parts[0])};
  if (parts.size() > 2) info.resource += fmt::format("/{}", parts[2]);
  return info;
}

}  // namespace trainyard::kube
