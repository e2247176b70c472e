#pragma once

#include <array>
#include <cstdint>
#include <string>

// Both sides of a store prove that they know the job's token, without sending it: HMAC-SHA256 under the token over a
// label, the side, both nonces, the generation and the restart. A proof seen once is worth nothing under the next
// nonce, and one side's proof is none for the other. What follows is not encrypted: the network must be the job's own.
namespace trainyard::rendezvous {

constexpr size_t kNonceBytes = 32;
constexpr size_t kProofBytes = 32;

struct Credentials {
  std::string token;  ///< may be empty: the protocol is the same, and proves nothing
  int64_t generation = 0;
  int64_t restart = 0;  ///< of the generation's ranks by their launchers
};

enum class Side : char { Client = 'c', Server = 's' };

struct Nonces {
  std::string client, server;  ///< kNonceBytes each
};

/// kNonceBytes that nobody can guess. Throws std::runtime_error where the system has no randomness to give.
std::string fresh_nonce();

/// kProofBytes, to be compared by is_same_secret().
std::string proof_of(const Credentials& credentials, Side side, const Nonces& nonces);

}  // namespace trainyard::rendezvous
