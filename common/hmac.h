#pragma once

#include <string>
#include <string_view>

// Digests, and proofs that somebody knows a secret, by OpenSSL.
namespace trainyard {

/// HMAC-SHA256 (RFC 2104) of `text`: 32 bytes. Throws std::runtime_error where the crypto library fails.
[[nodiscard]] std::string hmac_sha256(std::string_view key, std::string_view text);

/// SHA-256 of `text`: 32 bytes. Throws std::runtime_error where the crypto library fails.
[[nodiscard]] std::string sha256(std::string_view text);

/// Two lower-case digits a byte.
[[nodiscard]] std::string hex(std::string_view bytes);

/// Whether both are the same. The time that it takes tells nothing of where they differ.
[[nodiscard]] bool is_same_secret(std::string_view a, std::string_view b);

/// `count` random bytes, for keys and nonces. Throws std::runtime_error where the system gives none.
[[nodiscard]] std::string random_bytes(size_t count);

}  // namespace trainyard
