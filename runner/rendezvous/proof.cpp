#include "rendezvous/proof.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <stdexcept>

namespace trainyard::rendezvous {

std::string fresh_nonce() {
  std::string nonce(kNonceBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), kNonceBytes) != 1) {
    throw std::runtime_error("the system gives no random bytes for the rendezvous proof");
  }
  return nonce;
}

std::string proof_of(const Credentials& credentials, Side side, const Nonces& nonces) {
  // Every field before the generation has a fixed length, so no two sets of fields make one text.
  const std::string text = fmt::format("trainyard-store-2{}{}{}{}.{}", static_cast<char>(side), nonces.client,
                                       nonces.server, credentials.generation, credentials.restart);
  std::string proof(kProofBytes, '\0');
  unsigned int length = 0;
  if (!HMAC(EVP_sha256(), credentials.token.data(), static_cast<int>(credentials.token.size()),
            reinterpret_cast<const unsigned char*>(text.data()), text.size(),
            reinterpret_cast<unsigned char*>(proof.data()), &length) ||
      length != kProofBytes) {
    throw std::runtime_error("HMAC-SHA256 failed in the crypto library");
  }
  return proof;
}

bool is_same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace trainyard::rendezvous
