#include "webhook/material.h"

#include <fmt/format.h>

#include "base/base64.h"

namespace trainyard::webhook {
namespace {

std::string bytes_at(const Json& secret, const char* pointer) {
  return base64_decoded(text_at(secret, pointer)).value_or("");
}

/// Whether this entry of a configuration's "webhooks" calls the service.
bool calls(const Json& webhook, const std::string& service, const std::string& ns) {
  return text_at(webhook, "/clientConfig/service/name") == service &&
         text_at(webhook, "/clientConfig/service/namespace") == ns;
}

}  // namespace

std::vector<std::string> names_of_service(const std::string& service, const std::string& ns) {
  return {fmt::format("{}.{}.svc", service, ns),
          fmt::format("{}.{}.svc.cluster.local", service, ns),
          fmt::format("{}.{}", service, ns),
          service,
          "localhost",
          "127.0.0.1",
          "::1"};
}

Material material_of(const Json& secret) {
  return {.authorities = bytes_at(secret, "/data/ca.crt"),
          .authority_key = bytes_at(secret, "/data/ca.key"),
          .serving = {bytes_at(secret, "/data/tls.crt"), bytes_at(secret, "/data/tls.key")},
          .token_key = bytes_at(secret, "/data/token.key")};
}

Json with_material(Json secret, const Material& material) {
  Json& data = secret["data"];
  const auto put = [&data](const char* key, const std::string& bytes) {
    if (!bytes.empty()) data[key] = base64_encoded(bytes);
  };
  put("ca.crt", material.authorities);
  put("ca.key", material.authority_key);
  put("tls.crt", material.serving.certificate);
  put("tls.key", material.serving.key);
  put("token.key", material.token_key);
  return secret;
}

Json publication(const Json& config, const std::string& service, const std::string& ns, const std::string& bundle) {
  const Json* const found = find(config, "/webhooks");
  if (!found || !found->is_array()) return nullptr;
  Json webhooks = *found;  // a merge patch replaces a list as a whole: the guard makes that safe
  const std::string encoded = base64_encoded(bundle);
  for (Json& webhook : webhooks)
    if (calls(webhook, service, ns)) webhook["clientConfig"]["caBundle"] = encoded;
  if (webhooks == *found) return nullptr;
  return {{"metadata", {{"resourceVersion", text_at(config, "/metadata/resourceVersion")}}},
          {"webhooks", std::move(webhooks)}};
}

}  // namespace trainyard::webhook
