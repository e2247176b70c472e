#pragma once

#include <string>
#include <string_view>

namespace trainyard {

/// What the operators of one installation share, 32 random bytes: `token.key` of the Secret --token-secret-name.
struct OperatorKey {
  std::string bytes;
  [[nodiscard]] static OperatorKey random();
};

/// The token of a job, 64 hex digits: HMAC-SHA256(key, "namespace/name/uid"). It is derived and not kept, so that the
/// operator needs no right to read Secrets of jobs, and a job that was made anew under its name has another one.
/// Throws std::logic_error for a key without bytes: every token would be anybody's.
[[nodiscard]] std::string job_token(const OperatorKey& key, std::string_view ns, std::string_view name,
                                    std::string_view uid);

/// What convinces a job's rank 0 that these authorities (PEM) are the operator's: HMAC-SHA256(token,
/// "trainyard-authorities-1" + nonce + authorities) in hex. `nonce` is the asker's and has a fixed length.
[[nodiscard]] std::string authorities_proof(std::string_view token, std::string_view nonce,
                                            std::string_view authorities);

}  // namespace trainyard
