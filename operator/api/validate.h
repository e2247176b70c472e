#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace trainyard::api {

struct Violation {
  std::string path;     ///< "spec.pytorchReplicaSpecs[Master].replicas"
  std::string message;  ///< "Forbidden: must be 1"
};

struct Verdict {
  std::vector<Violation> violations;
  std::vector<std::string> warnings;
  [[nodiscard]] bool is_allowed() const { return violations.empty(); }
  /// All of them in the API server's own words, as the reference's webhook answers.
  [[nodiscard]] std::string message() const;
};

/// The webhook's rules: pure, any thread. `old_job` is null on creation.
[[nodiscard]] Verdict validate(const Json& job, const Json* old_job);

/// The structural schema's rules, for those who have no API server (`validate -f`, `run -f`): types, required and
/// unknown fields, each with its path and what is allowed, the nearest known name for an unknown one.
[[nodiscard]] Verdict validate_schema(const Json& job);

}  // namespace trainyard::api
