#include "kube/exec_plugin.h"

#include <fmt/format.h>

#include "base/base64.h"

namespace trainyard::kube {
namespace {

ApiError refusal(const ExecPlugin& plugin, const std::string& problem) {
  return {.kind = ErrorKind::NotSent, .message = fmt::format("{}: {} {}", plugin.where, plugin.command, problem)};
}

}  // namespace

std::string exec_info(const ExecPlugin& plugin, const Endpoint& endpoint) {
  Json info{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}};
  if (plugin.provide_cluster_info) {
    Json& cluster = info["spec"]["cluster"] = {{"server", endpoint.server}};
    if (!endpoint.ca_pem.empty()) cluster["certificate-authority-data"] = base64_encoded(endpoint.ca_pem);
    if (!endpoint.tls_server_name.empty()) cluster["tls-server-name"] = endpoint.tls_server_name;
    if (!endpoint.proxy_url.empty()) cluster["proxy-url"] = endpoint.proxy_url;
  }
  return dump(info);
}

Result<ExecCredential> parse_exec_credential(std::string_view output, const ExecPlugin& plugin) {
  const Json json = Json::parse(output, nullptr, false);
  if (!json.is_object() || text_at(json, "/kind") != "ExecCredential")
    return refusal(plugin, "printed no ExecCredential object");
  if (const std::string version = text_at(json, "/apiVersion"); version != plugin.api_version)
    return refusal(plugin,
                   fmt::format("answered with apiVersion '{}', but {} is configured", version, plugin.api_version));
  ExecCredential credential{.token = text_at(json, "/status/token"),
                            .certificate_pem = text_at(json, "/status/clientCertificateData"),
                            .key_pem = text_at(json, "/status/clientKeyData")};
  if (credential.certificate_pem.empty() != credential.key_pem.empty())
    return refusal(plugin, "gave one of clientCertificateData and clientKeyData without the other");
  if (credential.token.empty() && credential.certificate_pem.empty())
    return refusal(plugin, "gave neither status.token nor status.clientCertificateData");
  const std::string expires = text_at(json, "/status/expirationTimestamp");
  credential.expires = parse_time(expires);
  if (!expires.empty() && !credential.expires)
    return refusal(plugin, fmt::format("gave the expirationTimestamp '{}', which is no RFC 3339 time", expires));
  return credential;
}

}  // namespace trainyard::kube
