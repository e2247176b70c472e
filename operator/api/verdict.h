#pragma once

#include <string>
#include <vector>

namespace trainyard::api {

struct Violation {
  std::string path;     ///< "spec.pytorchReplicaSpecs[Master].replicas"
  std::string message;  ///< "Forbidden: must be 1"
  bool operator==(const Violation&) const = default;
};

struct Verdict {
  std::vector<Violation> violations;
  std::vector<std::string> warnings;
  [[nodiscard]] bool is_allowed() const { return violations.empty(); }
  /// All of them in the API server's own words, as the reference's webhook answers.
  [[nodiscard]] std::string message() const;
};

}  // namespace trainyard::api
