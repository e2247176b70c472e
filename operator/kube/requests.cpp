#include "kube/client.h"

namespace trainyard::kube {

Request get(std::string path) {
  return {.method = Method::Get, .path = std::move(path)};
}

Request create(std::string path, const Json& object) {
  return {.method = Method::Post, .path = std::move(path), .body = dump(object)};
}

Request replace(std::string path, const Json& object) {
  return {.method = Method::Put, .path = std::move(path), .body = dump(object)};
}

Request merge_patch(std::string path, const Json& patch) {
  return {.method = Method::Patch,
          .path = std::move(path),
          .body = dump(patch),
          .content_type = "application/merge-patch+json"};
}

Request remove(std::string path, const DeleteOptions& options) {
  Json body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) body["preconditions"]["resourceVersion"] = options.resource_version;
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  return {.method = Method::Delete, .path = std::move(path), .body = dump(body)};
}

}  // namespace trainyard::kube
