#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "decide/plan.h"

namespace trainyard::serve {

/// What `trainyard-operator serve` was told; cli/ fills it in.
struct Options {
  std::string kubeconfig, context;
  std::string ns;  ///< --namespace: watched alone; "": the whole cluster
  double kube_api_qps = 0, kube_api_burst = 0;

  std::string metrics_address = ":8080";  ///< "0": none
  std::string health_address = ":8081";
  int webhook_port = 9443;  ///< 0: no webhook and no progress endpoint
  std::string webhook_service = "training-operator";
  std::string webhook_secret = "training-operator-webhook-cert";
  std::string token_secret = "training-operator-token-key";
  std::string webhook_configuration = "validator.training-operator.kubeflow.org";

  bool leader_elect = false;
  std::string leader_election_id = "1ca428e5.training-operator.kubeflow.org";
  std::chrono::milliseconds lease_duration{15'000}, renew_deadline{10'000}, retry_period{2'000};

  decide::Settings decisions;  ///< progress_url "": the webhook's service, where the operator runs in the cluster
};

}  // namespace trainyard::serve
