#pragma once

#include <string>
#include <vector>

#include "base/job_token.h"
#include "base/json.h"
#include "webhook/certificate.h"

namespace trainyard::webhook {

/// What the Secret --webhook-secret-name holds, under the keys that the reference's has; token.key is ours, and is in
/// the Secret --token-secret-name as well.
struct Material {
  std::string authorities;    ///< ca.crt: a bundle, first the authority that signs
  std::string authority_key;  ///< ca.key: of that one
  KeyPair serving;            ///< tls.crt, tls.key
  std::string token_key;      ///< token.key: OperatorKey's bytes

  /// The authority that signs.
  [[nodiscard]] KeyPair authority() const { return {authorities, authority_key}; }
  bool operator==(const Material&) const = default;
};

/// The names a serving certificate is for.
[[nodiscard]] std::vector<std::string> names_of_service(const std::string& service, const std::string& ns);

/// The material of a Secret as the API has it; what is missing or no base64 stays empty.
[[nodiscard]] Material material_of(const Json& secret);
/// `secret` (an object, or one that is still to be made) with this material in its data; all else in it stays.
[[nodiscard]] Json with_material(Json secret, const Material& material);

/// The merge patch, guarded by the resourceVersion, that publishes `bundle` as caBundle of each webhook in `config`
/// that calls this service; null where all have it.
[[nodiscard]] Json publication(const Json& config, const std::string& service, const std::string& ns,
                               const std::string& bundle);

}  // namespace trainyard::webhook
