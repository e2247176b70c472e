#include "kube/kubeconfig.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/base64.h"

namespace trainyard::kube {
namespace {

const std::string kPem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";

/// Files and variables that exist nowhere else.
struct World {
  std::map<std::string, std::string> files, variables;

  [[nodiscard]] Surroundings surroundings() const {
    return {.variable = [this](const std::string& name) -> std::optional<std::string> {
              const auto found = variables.find(name);
              return found == variables.end() ? std::nullopt : std::optional(found->second);
            },
            .read_file = [this](const std::filesystem::path& path) -> std::optional<std::string> {
              const auto found = files.find(path.string());
              return found == files.end() ? std::nullopt : std::optional(found->second);
            }};
  }
  [[nodiscard]] Config load(const ConfigChoice& choice = {}) const { return load_config(choice, surroundings()); }
  [[nodiscard]] std::string refusal(const ConfigChoice& choice = {}) const {
    try {
      static_cast<void>(load(choice));
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
};

std::string kubeconfig(const std::string& cluster, const std::string& user, const std::string& context = "") {
  return "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
         "clusters: [{name: c, cluster: {" +
         cluster +
         "}}]\n"
         "users: [{name: u, user: {" +
         user +
         "}}]\n"
         "contexts: [{name: here, context: {cluster: c, user: u" +
         context + "}}]\n";
}

World world_with(const std::string& cluster, const std::string& user, const std::string& context = "") {
  return {.files = {{"/k/config", kubeconfig(cluster, user, context)}}, .variables = {{"KUBECONFIG", "/k/config"}}};
}

TEST_CASE("a kubeconfig gives server, authority, identity and namespace, and paths start from its folder", "[kube]") {
  World world = world_with(
      "server: 'https://10.0.0.1:6443/', certificate-authority: pki/ca.crt, tls-server-name: api, "
      "proxy-url: 'http://proxy:3128'",
      "token: secret, tokenFile: token, as: ada, as-groups: [a, b]", ", namespace: team");
  world.files["/k/pki/ca.crt"] = kPem;
  world.files["/k/token"] = "from-file\n";
  const Config config = world.load();
  CHECK(config.endpoint.server == "https://10.0.0.1:6443");
  CHECK(config.endpoint.ca_pem == kPem);
  CHECK(config.endpoint.tls_server_name == "api");
  CHECK(config.endpoint.proxy_url == "http://proxy:3128");
  CHECK(config.identity.token == "secret");
  CHECK(config.identity.token_file == "/k/token");
  CHECK(config.identity.impersonation ==
        std::vector<std::string>{"Impersonate-User: ada", "Impersonate-Group: a", "Impersonate-Group: b"});
  CHECK(config.ns == "team");
  CHECK(config.origin == "/k/config, context here");
}

TEST_CASE("certificates may be in the kubeconfig itself", "[kube]") {
  const std::string data = base64_encoded(kPem);
  const World world = world_with("server: 'https://a', certificate-authority-data: " + data,
                                 "client-certificate-data: " + data + ", client-key-data: " + data);
  const Config config = world.load();
  CHECK(config.endpoint.ca_pem == kPem);
  CHECK(config.identity.certificate_pem == kPem);
  CHECK(config.identity.key_pem == kPem);
  CHECK(config.ns == "default");
}

TEST_CASE("an exec plugin with a path is beside the kubeconfig, one without in PATH", "[kube]") {
  const auto plugin = [](const std::string& command) {
    return *world_with("server: 'https://a'",
                       "exec: {apiVersion: client.authentication.k8s.io/v1, command: " + command +
                           ", args: [get, token], env: [{name: A, value: b}], "
                           "interactiveMode: IfAvailable, provideClusterInfo: true}")
                .load()
                .identity.exec;
  };
  CHECK(plugin("aws").command == "aws");
  CHECK(plugin("./bin/login").command == "/k/bin/login");
  CHECK(plugin("/usr/bin/login").command == "/usr/bin/login");
  CHECK(plugin("aws").args == std::vector<std::string>{"get", "token"});
  CHECK(plugin("aws").env == std::vector<std::pair<std::string, std::string>>{{"A", "b"}});
  CHECK(plugin("aws").provide_cluster_info);
}

TEST_CASE("what cannot work is refused with file, field and what is right", "[kube]") {
  struct Row {
    const char *cluster, *user, *part;
  };
  const Row row = GENERATE(values<Row>({
      {"server: ''", "", "clusters[c].cluster.server: is ''; use https://HOST:PORT"},
      {"server: 'http://10.0.0.1'", "", "clusters[c].cluster.server: is 'http://10.0.0.1'; use https"},
      {"server: 'https://'", "", "clusters[c].cluster.server: is 'https:'; use https://HOST:PORT"},
      {"server: 'https://a:port'", "", "clusters[c].cluster.server: is 'https://a:port'; use https://HOST:PORT"},
      {"server: 'https://a:70000'", "", "clusters[c].cluster.server: is 'https://a:70000'; use https://HOST:PORT"},
      {"server: [1]", "", "clusters[c].cluster.server: must be a text"},
      {"server: 'https://a', insecure-skip-tls-verify: true", "", "cluster.insecure-skip-tls-verify: is refused"},
      {"server: 'https://a', insecure-skip-tls-verify: maybe", "", "is 'maybe'; use true or false"},
      {"server: 'https://a', certificate-authority-data: '***'", "", "certificate-authority-data: is no base64"},
      {"server: 'https://a', certificate-authority-data: aGVsbG8=", "",
       "certificate-authority-data: holds no PEM block"},
      {"server: 'https://a', certificate-authority: gone.crt", "", "certificate-authority: /k/gone.crt cannot be read"},
      {"server: 'https://a'", "client-certificate-data: LS0tLS1CRUdJTiA=", "users[u].user.client-key: is missing"},
      {"server: 'https://a'", "username: a, password: b", "basic authentication was removed"},
      {"server: 'https://a'", "auth-provider: {name: gcp}", "auth-provider: was removed"},
      {"server: 'https://a'", "tokenFile: gone", "users[u].user.tokenFile: /k/gone cannot be read"},
      {"server: 'https://a'", "exec: {apiVersion: client.authentication.k8s.io/v1}", "user.exec.command: is missing"},
      {"server: 'https://a'", "exec: {apiVersion: v2, command: a}", "user.exec.apiVersion: is 'v2'"},
      {"server: 'https://a'",
       "exec: {apiVersion: client.authentication.k8s.io/v1, command: a, interactiveMode: Always}",
       "interactiveMode: is Always, but an operator has no terminal"},
      {"server: 'https://a'", "exec: {apiVersion: client.authentication.k8s.io/v1, command: a, args: {}}",
       "exec.args: must be a list of texts"},
      {"server: 'https://a'", "exec: nothing", "users[u].user.exec: must be a map"},
      {"server: 'https://a'", "token: \"a\\nb\"", "users[u].user.token: holds a control character"},
      {"server: 'https://a'", "as: \"a\\nb\"", "holds a control character"},
  }));
  const std::string refusal = world_with(row.cluster, row.user).refusal();
  CAPTURE(refusal);
  CHECK(refusal.starts_with("/k/config: "));
  CHECK(refusal.find(row.part) != std::string::npos);
}

TEST_CASE("plain http is for this machine alone", "[kube]") {
  for (const char* const server : {"http://localhost:8001", "http://127.0.0.1:8001", "http://[::1]:8001"})
    CHECK(world_with(std::string("server: '") + server + "'", "").load().endpoint.server == server);
  CHECK_FALSE(world_with("server: 'http://localhost.example.com'", "").refusal().empty());
}

TEST_CASE("files that are no kubeconfig say so", "[kube]") {
  struct Row {
    const char *text, *part;
  };
  const Row row = GENERATE(
      values<Row>({{"a: [", "/k/config:1: is no YAML"},
                   {"- a", "is no kubeconfig"},
                   {"apiVersion: v1", "current-context is missing"},
                   {"current-context: x", "contexts 'x' is not there, but current-context asks for it; known: none"},
                   {"current-context: x\ncontexts: {}", "contexts: must be a list"},
                   {"current-context: x\ncontexts: [y]", "contexts: each item must be a map"}}));
  const World world{.files = {{"/k/config", row.text}}, .variables = {{"KUBECONFIG", "/k/config"}}};
  CAPTURE(world.refusal());
  CHECK(world.refusal().find(row.part) != std::string::npos);
}

TEST_CASE("KUBECONFIG is a list: the first file that names something has its way", "[kube]") {
  World world;
  world.variables["KUBECONFIG"] = "/gone::/a:/b";
  world.files["/a"] = "current-context: two\ncontexts: [{name: two, context: {cluster: c, user: u}}]";
  world.files["/b"] = kubeconfig("server: 'https://b'", "token: b") + "\n";
  CHECK(world.load().endpoint.server == "https://b");
  world.files["/a"] += "\nclusters: [{name: c, cluster: {server: 'https://a'}}]";
  CHECK(world.load().endpoint.server == "https://a");
  CHECK(world.load({.context = "here"}).identity.token == "b");
  CHECK(world.refusal({.context = "there"}).find("known: two, here") != std::string::npos);
  CHECK(world.refusal({.context = "there"}).find("--context asks for it") != std::string::npos);
}

TEST_CASE("the flag comes before $KUBECONFIG, that before the cluster around, that before the home folder", "[kube]") {
  World world = world_with("server: 'https://variable'", "");
  world.variables["HOME"] = "/home/ada";
  world.files["/home/ada/.kube/config"] = kubeconfig("server: 'https://home'", "");
  world.files["/flag"] = kubeconfig("server: 'https://flag'", "");
  world.files["/var/run/secrets/kubernetes.io/serviceaccount/token"] = "t";
  world.files["/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"] = kPem;
  world.files["/var/run/secrets/kubernetes.io/serviceaccount/namespace"] = "operators\n";
  world.variables["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  world.variables["KUBERNETES_SERVICE_PORT"] = "443";
  CHECK(world.load({.kubeconfig = "/flag"}).endpoint.server == "https://flag");
  CHECK(world.refusal({.kubeconfig = "/nope"}) == "--kubeconfig /nope cannot be read");
  CHECK(world.load().endpoint.server == "https://variable");
  world.variables.erase("KUBECONFIG");
  CHECK(world.load().endpoint.server == "https://[fd00::1]:443");
  CHECK(world.load().ns == "operators");
  CHECK(world.load().identity.token_file == "/var/run/secrets/kubernetes.io/serviceaccount/token");
  world.files.erase("/var/run/secrets/kubernetes.io/serviceaccount/token");
  CHECK(world.refusal().find("automountServiceAccountToken") != std::string::npos);
  world.variables.erase("KUBERNETES_SERVICE_HOST");
  CHECK(world.load().endpoint.server == "https://home");
  world.files.clear();
  CHECK(world.refusal().find("no API server is configured") != std::string::npos);
}

}  // namespace
}  // namespace trainyard::kube
