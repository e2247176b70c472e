#include "rendezvous/proof.h"

#include <fmt/format.h>

#include "common/hmac.h"

namespace trainyard::rendezvous {

std::string fresh_nonce() {
  return random_bytes(kNonceBytes);
}

std::string proof_of(const Credentials& credentials, Side side, const Nonces& nonces) {
  // Every field before the generation has a fixed length, so no two sets of fields make one text.
  return hmac_sha256(credentials.token,
                     fmt::format("trainyard-store-2{}{}{}{}.{}", static_cast<char>(side), nonces.client, nonces.server,
                                 credentials.generation, credentials.restart));
}

}  // namespace trainyard::rendezvous
