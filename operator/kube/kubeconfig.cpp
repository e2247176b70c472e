#include "kube/kubeconfig.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/base64.h"
#include "base/text.h"
#include "kube/text.h"

namespace trainyard::kube {
namespace fs = std::filesystem;
namespace {

constexpr size_t kFileLimit = 8 << 20;

/// A named entry of a file's list ("users[eks].user"), and the file that its relative paths start from.
struct Entry {
  fs::path file;
  std::string where;
  YAML::Node content;

  [[noreturn]] void fail(const std::string& field, const std::string& problem) const {
    throw ConfigError(
        fmt::format("{}: {}{}{}: {}", file.string(), where, where.empty() || field.empty() ? "" : ".", field, problem));
  }
  [[nodiscard]] std::string text(const std::string& field) const {
    const YAML::Node value = content[field];
    if (!value.IsDefined() || value.IsNull()) return "";
    if (!value.IsScalar()) fail(field, "must be a text");
    return value.Scalar();
  }
  [[nodiscard]] bool is_true(const std::string& field) const {
    const std::string value = text(field);
    if (!value.empty() && value != "true" && value != "false")
      fail(field, fmt::format("is '{}'; use true or false", value));
    return value == "true";
  }
  [[nodiscard]] fs::path path(const std::string& field) const {
    const std::string value = text(field);
    return value.empty() ? fs::path() : (file.parent_path() / value).lexically_normal();
  }
  [[nodiscard]] Entry at(const std::string& field) const {
    const YAML::Node value = content[field];
    if (value.IsDefined() && !value.IsNull() && !value.IsMap()) fail(field, "must be a map");
    return {file, where + "." + field, value.IsDefined() && value.IsMap() ? value : YAML::Node(YAML::NodeType::Map)};
  }
};

std::string pem_or_fail(const Entry& entry, const std::string& field, std::string pem) {
  if (pem.find("-----BEGIN ") == pem.npos) entry.fail(field, "holds no PEM block (-----BEGIN …)");
  return pem;
}

std::string decoded(const Entry& entry, const std::string& field) {
  const std::string text = entry.text(field);
  if (text.empty()) return "";
  auto bytes = base64_decoded(text);
  if (!bytes) entry.fail(field, "is no base64; `base64 -w0 FILE` makes it");
  return pem_or_fail(entry, field, std::move(*bytes));
}

std::string file_content(const Entry& entry, const std::string& field, const Surroundings& surroundings) {
  const fs::path path = entry.path(field);
  if (path.empty()) return "";
  auto content = surroundings.read_file(path);
  if (!content) entry.fail(field, fmt::format("{} cannot be read", path.string()));
  return pem_or_fail(entry, field, std::move(*content));
}

class Kubeconfig {
 public:
  void add(const fs::path& file, const std::string& text) {
    YAML::Node root;
    try {
      root = YAML::Load(text);
    } catch (const YAML::Exception& error) {
      throw ConfigError(fmt::format("{}:{}: is no YAML: {}", file.string(), error.mark.line + 1, error.msg));
    }
    if (root.IsNull()) return;
    if (!root.IsMap())
      throw ConfigError(file.string() + ": is no kubeconfig; it begins with `apiVersion: v1`, `kind: Config`");
    roots_.push_back({file, "", root});
  }
  [[nodiscard]] bool empty() const { return roots_.empty(); }

  [[nodiscard]] std::string current_context() const {
    for (const Entry& root : roots_)
      if (std::string name = root.text("current-context"); !name.empty()) return name;
    return "";
  }

  /// The `inner` map of the first entry of `list` with this name; entries of earlier files hide later ones'.
  [[nodiscard]] Entry entry(const std::string& list, const std::string& inner, const std::string& name,
                            const std::string& asked_by) const {
    std::string known;
    for (const Entry& root : roots_) {
      const YAML::Node items = root.content[list];
      if (!items.IsDefined() || items.IsNull()) continue;
      if (!items.IsSequence()) root.fail(list, "must be a list");
      for (const YAML::Node& item : items) {
        if (!item.IsMap()) root.fail(list, "each item must be a map with a name");
        const Entry named{root.file, list, item};
        if (named.text("name") == name) return Entry{root.file, fmt::format("{}[{}]", list, name), item}.at(inner);
        known += (known.empty() ? "" : ", ") + named.text("name");
      }
    }
    throw ConfigError(fmt::format("{}: {} '{}' is not there, but {} asks for it; known: {}",
                                  roots_.empty() ? "" : roots_.front().file.string(), list, name, asked_by,
                                  known.empty() ? "none" : known));
  }

 private:
  std::vector<Entry> roots_;
};

bool has_control_character(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// None, or ":PORT", then the end or a path.
bool has_good_port(std::string_view server, std::string_view host) {
  std::string_view rest = server.substr(server.find(host) + host.size());
  rest = rest.substr(0, rest.find('/'));
  if (rest.empty()) return true;
  const auto port = rest.front() == ':' ? parse_int(rest.substr(1)) : std::nullopt;
  return port && *port > 0 && *port < 65536;
}

void check_server(const Entry& cluster, const std::string& server) {
  const std::string_view host = host_of(server);
  const bool is_address = !host.empty() && has_good_port(server, host) && !has_control_character(server);
  if (is_address && server.starts_with("https://")) return;
  if (is_address && server.starts_with("http://") && is_loopback(host)) return;  // `kubectl proxy`
  cluster.fail("server",
               fmt::format("is '{}'; use https://HOST:PORT (plain http only to this machine itself)", server));
}

Endpoint endpoint_of(const Entry& cluster, const Surroundings& surroundings) {
  Endpoint endpoint{.server = cluster.text("server")};
  while (endpoint.server.ends_with('/')) endpoint.server.pop_back();
  check_server(cluster, endpoint.server);
  if (cluster.is_true("insecure-skip-tls-verify"))
    cluster.fail("insecure-skip-tls-verify",
                 "is refused: the server's certificate is always verified. Put its CA into certificate-authority-data, "
                 "and where its name differs from the server's host, that name into tls-server-name");
  endpoint.ca_pem = decoded(cluster, "certificate-authority-data");
  if (endpoint.ca_pem.empty()) endpoint.ca_pem = file_content(cluster, "certificate-authority", surroundings);
  endpoint.tls_server_name = cluster.text("tls-server-name");
  endpoint.proxy_url = cluster.text("proxy-url");
  return endpoint;
}

std::vector<std::string> texts_of(const Entry& entry, const std::string& field) {
  std::vector<std::string> texts;
  const YAML::Node items = entry.content[field];
  if (!items.IsDefined() || items.IsNull()) return texts;
  if (!items.IsSequence()) entry.fail(field, "must be a list of texts");
  for (const YAML::Node& item : items) {
    if (!item.IsScalar()) entry.fail(field, "must be a list of texts");
    texts.push_back(item.Scalar());
  }
  return texts;
}

ExecPlugin plugin_of(const Entry& exec) {
  ExecPlugin plugin{.where = exec.file.string() + ": " + exec.where,
                    .api_version = exec.text("apiVersion"),
                    .command = exec.text("command"),
                    .install_hint = exec.text("installHint"),
                    .args = texts_of(exec, "args"),
                    .provide_cluster_info = exec.is_true("provideClusterInfo")};
  if (plugin.command.empty()) exec.fail("command", "is missing: the program that prints the credential");
  if (plugin.command.find('/') != plugin.command.npos) plugin.command = exec.path("command").string();
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1")
    exec.fail("apiVersion",
              fmt::format("is '{}'; client.authentication.k8s.io/v1 and …/v1beta1 are known", plugin.api_version));
  const std::string mode = exec.text("interactiveMode");
  if (mode == "Always")
    exec.fail("interactiveMode", "is Always, but an operator has no terminal; use Never or IfAvailable");
  if (!mode.empty() && mode != "Never" && mode != "IfAvailable")
    exec.fail("interactiveMode", fmt::format("is '{}'; use Never or IfAvailable", mode));
  const YAML::Node env = exec.content["env"];
  if (!env.IsDefined() || env.IsNull()) return plugin;
  if (!env.IsSequence()) exec.fail("env", "must be a list of {name, value}");
  for (const YAML::Node& item : env) {
    if (!item.IsMap()) exec.fail("env", "must be a list of {name, value}");
    const Entry variable{exec.file, exec.where + ".env", item};
    plugin.env.emplace_back(variable.text("name"), variable.text("value"));
  }
  return plugin;
}

std::vector<std::string> impersonation_of(const Entry& user) {
  std::vector<std::string> headers;
  const auto add = [&](const char* header, const std::string& value) {
    if (has_control_character(value)) user.fail("as", "holds a control character");
    if (!value.empty()) headers.push_back(fmt::format("{}: {}", header, value));
  };
  add("Impersonate-User", user.text("as"));
  add("Impersonate-Uid", user.text("as-uid"));
  for (const std::string& group : texts_of(user, "as-groups")) add("Impersonate-Group", group);
  return headers;
}

Identity identity_of(const Entry& user, const Surroundings& surroundings) {
  Identity identity{.token = user.text("token"), .token_file = user.path("tokenFile")};
  if (has_control_character(trimmed(identity.token))) user.fail("token", "holds a control character");
  if (!user.text("username").empty() || !user.text("password").empty())
    user.fail("username", "basic authentication was removed from Kubernetes; use a token or a client certificate");
  if (user.content["auth-provider"].IsDefined())
    user.fail("auth-provider", "was removed from Kubernetes; use the provider's exec plugin");
  identity.certificate_pem = decoded(user, "client-certificate-data");
  identity.key_pem = decoded(user, "client-key-data");
  if (identity.certificate_pem.empty()) {
    identity.certificate_pem = file_content(user, "client-certificate", surroundings);
    identity.certificate_file = user.path("client-certificate");
  }
  if (identity.key_pem.empty()) {
    identity.key_pem = file_content(user, "client-key", surroundings);
    identity.key_file = user.path("client-key");
  }
  if (identity.certificate_pem.empty() != identity.key_pem.empty())
    user.fail(identity.key_pem.empty() ? "client-key" : "client-certificate",
              "is missing: a client certificate and its key come together");
  if (!identity.token_file.empty() && !surroundings.read_file(identity.token_file))
    user.fail("tokenFile", identity.token_file.string() + " cannot be read");
  if (const YAML::Node exec = user.content["exec"]; exec.IsDefined() && !exec.IsNull())
    identity.exec = plugin_of(user.at("exec"));
  identity.impersonation = impersonation_of(user);
  return identity;
}

std::vector<fs::path> files_of(const ConfigChoice& choice, const Surroundings& surroundings) {
  if (!choice.kubeconfig.empty()) return {choice.kubeconfig};
  std::vector<fs::path> files;
  const std::string list = surroundings.variable("KUBECONFIG").value_or("");
  for (size_t start = 0; start < list.size();) {
    const size_t end = std::min(list.find(':', start), list.size());
    if (end > start) files.emplace_back(list.substr(start, end - start));
    start = end + 1;
  }
  return files;
}

Config config_of(const Kubeconfig& kubeconfig, const ConfigChoice& choice, const std::string& origin,
                 const Surroundings& surroundings) {
  const std::string name = choice.context.empty() ? kubeconfig.current_context() : choice.context;
  if (name.empty()) throw ConfigError(origin + ": current-context is missing; set it, or choose one with --context");
  const Entry context =
      kubeconfig.entry("contexts", "context", name, choice.context.empty() ? "current-context" : "--context");
  const std::string asked_by = fmt::format("contexts[{}]", name);
  const Entry cluster = kubeconfig.entry("clusters", "cluster", context.text("cluster"), asked_by);
  Config config{
      .endpoint = endpoint_of(cluster, surroundings),
      .ca_file = cluster.text("certificate-authority-data").empty() ? cluster.path("certificate-authority") : "",
      .origin = fmt::format("{}, context {}", origin, name)};
  if (const std::string user = context.text("user"); !user.empty())
    config.identity = identity_of(kubeconfig.entry("users", "user", user, asked_by), surroundings);
  if (const std::string ns = context.text("namespace"); !ns.empty()) config.ns = ns;
  return config;
}

}  // namespace

Surroundings process_surroundings() {
  return {.variable = [](const std::string& name) -> std::optional<std::string> {
            const char* const value = std::getenv(name.c_str());
            return value ? std::optional<std::string>(value) : std::nullopt;
          },
          .read_file = [](const fs::path& path) -> std::optional<std::string> {
            std::ifstream file(path, std::ios::binary);
            if (!file || !fs::is_regular_file(path) || fs::file_size(path) > kFileLimit) return std::nullopt;
            return std::string(std::istreambuf_iterator<char>(file), {});
          }};
}

Config in_cluster_config(const Surroundings& surroundings) {
  const auto host = surroundings.variable("KUBERNETES_SERVICE_HOST");
  if (!host || host->empty()) throw ConfigError("KUBERNETES_SERVICE_HOST is not set: this is not a pod of a cluster");
  const std::string port = surroundings.variable("KUBERNETES_SERVICE_PORT").value_or("443");
  const auto read = [&](const char* name) {
    const fs::path path = surroundings.service_account / name;
    auto content = surroundings.read_file(path);
    if (!content || content->empty())
      throw ConfigError(path.string() + " cannot be read; the pod needs automountServiceAccountToken: true");
    return *content;
  };
  static_cast<void>(read("token"));
  const std::string address = host->find(':') == host->npos ? *host : fmt::format("[{}]", *host);
  Config config{.endpoint = {.server = fmt::format("https://{}:{}", address, port), .ca_pem = read("ca.crt")},
                .ca_file = surroundings.service_account / "ca.crt",
                .identity = {.token_file = surroundings.service_account / "token"},
                .origin = "the pod's service account"};
  if (const auto ns = surroundings.read_file(surroundings.service_account / "namespace")) config.ns = trimmed(*ns);
  return config;
}

Config load_config(const ConfigChoice& choice, const Surroundings& surroundings) {
  auto files = files_of(choice, surroundings);
  if (files.empty()) {
    if (surroundings.variable("KUBERNETES_SERVICE_HOST")) return in_cluster_config(surroundings);
    if (const auto home = surroundings.variable("HOME")) files.push_back(fs::path(*home) / ".kube/config");
  }
  Kubeconfig kubeconfig;
  std::string origin;
  for (const fs::path& file : files) {
    origin += (origin.empty() ? "" : ":") + file.string();
    const auto text = surroundings.read_file(file);
    if (text) kubeconfig.add(file, *text);
    if (!text && !choice.kubeconfig.empty()) throw ConfigError("--kubeconfig " + file.string() + " cannot be read");
  }
  if (kubeconfig.empty())
    throw ConfigError(
        fmt::format("no API server is configured: {} is not there or empty, and this is no pod of a cluster; "
                    "use --kubeconfig FILE or set KUBECONFIG",
                    origin.empty() ? "~/.kube/config" : origin));
  return config_of(kubeconfig, choice, origin, surroundings);
}

}  // namespace trainyard::kube
