#pragma once

#include <chrono>
#include <stop_token>
#include <string>

// The operator may get a new certificate authority while a job runs. Its server is then a stranger to the job, until it
// proves by the job's token, which it does not get, that the new authority is its own (docs/interfaces.md, "Progress").
namespace trainyard::metrics {

/// 64 hex digits that nobody can guess.
[[nodiscard]] std::string fresh_nonce();

/// The authorities (PEM; "": the system's) in `answer`, a JSON object {authorities, proof}. Throws std::runtime_error
/// where the proof is not made with this token for this nonce.
[[nodiscard]] std::string proven_authorities(const std::string& answer, const std::string& token,
                                             const std::string& nonce);

/// Asks the server at `url`, whoever it is, and believes what it proves. Throws std::runtime_error with the reason
/// where it proves nothing.
[[nodiscard]] std::string learn_authorities(const std::string& url, const std::string& token,
                                            std::chrono::milliseconds timeout, const std::stop_token& call_off);

}  // namespace trainyard::metrics
