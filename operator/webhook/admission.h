#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/validate.h"
#include "http/message.h"

namespace trainyard::webhook {

inline constexpr std::string_view kPath = "/validate-kubeflow-org-v1-pytorchjob";

/// An AdmissionReview (admission.k8s.io/v1) of a PyTorchJob with its answer in place of the request. Pure. Throws
/// http::BadBody where `body` is no such review. `is_allowed` tells what it came to.
struct Reviewed {
  std::string body;
  bool is_allowed = true;
};
[[nodiscard]] Reviewed review(const std::string& body);

/// What --webhook-server-port serves. `on_review` gets each outcome and the seconds it took, for metrics.
[[nodiscard]] http::Handler admission_handler(std::function<void(bool is_allowed, double seconds)> on_review);

/// Objects in etcd have at most 1.5 MiB; an update's review carries two of them, and what is around them.
inline constexpr size_t kBodyLimit = 4 << 20;

}  // namespace trainyard::webhook
