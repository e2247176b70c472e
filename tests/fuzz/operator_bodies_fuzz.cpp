#include <cstddef>
#include <cstdint>
#include <string>

#include "http/json_body.h"
#include "telemetry/progress_body.h"
#include "webhook/admission.h"

using namespace trainyard;

namespace {

constexpr const char* kBeforeJob =
    R"({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": "UPDATE",
        "kind": {"group": "kubeflow.org", "kind": "PyTorchJob"}, "object": )";

void review(const std::string& body) {
  try {
    static_cast<void>(webhook::review(body));
  } catch (const http::BadBody&) {
  }
}

}  // namespace

// Bodies that anybody in the cluster may send to the operator: an AdmissionReview, one with any job in it, and a job's
// progress. Each is refused with BadBody or answered; nothing else may come out.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  review(body);
  review(kBeforeJob + body + R"(, "oldObject": )" + body + "}}");
  try {
    static_cast<void>(telemetry::parse_post(body, {}));
  } catch (const http::BadBody&) {
  }
  return 0;
}
