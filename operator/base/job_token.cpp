#include "base/job_token.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <stdexcept>

namespace trainyard {

OperatorKey OperatorKey::random() {
  std::string bytes(32, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) != 1)
    throw std::runtime_error("the system gives no random bytes for the operator's key");
  return {bytes};
}

std::string job_token(const OperatorKey& key, std::string_view ns, std::string_view name, std::string_view uid) {
  if (key.bytes.empty()) throw std::logic_error("job_token: the operator's key is empty");
  const std::string text = fmt::format("{}/{}/{}", ns, name, uid);  // no name in Kubernetes contains a slash
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (!HMAC(EVP_sha256(), key.bytes.data(), static_cast<int>(key.bytes.size()),
            reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &length))
    throw std::runtime_error("HMAC-SHA256 failed in the crypto library");
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

bool is_same_token(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace trainyard
