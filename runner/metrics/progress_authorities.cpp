#include "metrics/progress_authorities.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/hmac.h"
#include "metrics/web_post.h"

namespace trainyard::metrics {
namespace {

constexpr size_t kNonceBytes = 32;
constexpr size_t kMostProven = size_t{256} << 10;  // authorities of a foreign bundle may be many

std::string proof_of(const std::string& authorities, const std::string& token, const std::string& nonce) {
  // Label and nonce have a fixed length, so no two sets of fields make one text; the store's proofs have another label.
  return hex(hmac_sha256(token, "trainyard-authorities-1" + nonce + authorities));
}

}  // namespace

std::string fresh_nonce() {
  return hex(random_bytes(kNonceBytes));
}

std::string proven_authorities(const std::string& answer, const std::string& token, const std::string& nonce) {
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  const auto text_at = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
  };
  std::string authorities = text_at("authorities");
  if (!is_same_secret(text_at("proof"), proof_of(authorities, token, nonce)))
    throw std::runtime_error("it cannot prove by this job's token that it is the operator");
  return authorities;
}

std::string learn_authorities(const std::string& url, const std::string& token, std::chrono::milliseconds timeout,
                              const std::stop_token& call_off) {
  if (token.empty()) throw std::runtime_error("this job has no token to have the operator proven by");
  WebPost question(url, {"Content-Type: text/plain"}, kMostProven);
  question.trust_anyone();  // the nonce is no secret, and the answer is believed for its proof alone
  const std::string nonce = fresh_nonce();
  const WebPost::Answer answer = question.send(nonce, timeout, call_off);
  if (answer.status != 200) throw std::runtime_error("asked who signs it: " + answer.failure());
  return proven_authorities(answer.text, token, nonce);
}

}  // namespace trainyard::metrics
