#include "base/job_token.h"

#include <fmt/format.h>

#include <stdexcept>

#include "common/hmac.h"

namespace trainyard {

OperatorKey OperatorKey::random() {
  return {random_bytes(32)};
}

std::string job_token(const OperatorKey& key, std::string_view ns, std::string_view name, std::string_view uid) {
  if (key.bytes.empty()) throw std::logic_error("job_token: the operator's key is empty");
  return hex(hmac_sha256(key.bytes, fmt::format("{}/{}/{}", ns, name, uid)));  // no name in Kubernetes contains a slash
}

std::string authorities_proof(std::string_view token, std::string_view nonce, std::string_view authorities) {
  if (token.empty()) throw std::logic_error("authorities_proof: the job's token is empty");
  return hex(hmac_sha256(token, fmt::format("trainyard-authorities-1{}{}", nonce, authorities)));
}

}  // namespace trainyard
