#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/time.h"
#include "kube/kubeconfig.h"
#include "kube/result.h"

// client.authentication.k8s.io: what a credential plugin is told and what it answers, as texts.
namespace trainyard::kube {

struct ExecCredential {
  std::string token, certificate_pem, key_pem;
  std::optional<TimePoint> expires;
};

/// The value of KUBERNETES_EXEC_INFO.
[[nodiscard]] std::string exec_info(const ExecPlugin& plugin, const Endpoint& endpoint);
[[nodiscard]] Result<ExecCredential> parse_exec_credential(std::string_view output, const ExecPlugin& plugin);

}  // namespace trainyard::kube
