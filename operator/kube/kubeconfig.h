#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kube/http.h"

namespace trainyard::kube {

/// What is configured cannot work: `what()` names file and field and says what is right. Exit code 2.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A credential plugin (client.authentication.k8s.io).
struct ExecPlugin {
  std::string where;  ///< "/home/a/.kube/config: users[eks].user.exec", for messages
  std::string api_version, command, install_hint;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  bool provide_cluster_info = false;
};

/// Who we are. What is in a file is read again every minute and after a 401; so is a plugin's answer once it expires.
struct Identity {
  std::string token;
  std::filesystem::path token_file;  ///< before `token` where both are given
  std::string certificate_pem, key_pem;
  std::filesystem::path certificate_file, key_file;
  std::optional<ExecPlugin> exec;
  std::vector<std::string> impersonation;  ///< headers
};

/// A server and an identity there.
struct Config {
  Endpoint endpoint;              ///< without the client's certificate, which is the identity's
  std::filesystem::path ca_file;  ///< of endpoint.ca_pem; "": not from a file. Read again as the identity's files are
  Identity identity;
  std::string ns = "default";
  std::string origin;  ///< where it is from, for messages
};

/// What a process can see of its surroundings; tests make their own.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  std::function<std::optional<std::string>(const std::filesystem::path&)> read_file;
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};
[[nodiscard]] Surroundings process_surroundings();

struct ConfigChoice {
  std::string kubeconfig;  ///< --kubeconfig; "": $KUBECONFIG (a list, merged), else in-cluster, else ~/.kube/config
  std::string context;     ///< "": the current one
};

/// Throws ConfigError.
[[nodiscard]] Config load_config(const ConfigChoice& choice, const Surroundings& surroundings);
/// The identity of a pod's service account. Throws ConfigError.
[[nodiscard]] Config in_cluster_config(const Surroundings& surroundings);

}  // namespace trainyard::kube
