#include "base/job_token.h"

#include <catch2/catch.hpp>

#include "common/hmac.h"

using namespace trainyard;

TEST_CASE("job_token: HMAC-SHA256 of namespace/name/uid, in hex", "[token]") {
  // printf 'team/llama/u-1' | openssl dgst -sha256 -hmac key
  CHECK(job_token({"key"}, "team", "llama", "u-1") ==
        "2103734906e2365f9a8ddd312b0b9b6a460ed852b764ef916da504d345184397");
}

TEST_CASE("job_token: another key, namespace, name or uid gives another token", "[token]") {
  const std::string token = job_token({"key"}, "team", "llama", "u-1");
  CHECK_FALSE(is_same_secret(token, job_token({"yek"}, "team", "llama", "u-1")));
  CHECK_FALSE(is_same_secret(token, job_token({"key"}, "meat", "llama", "u-1")));
  CHECK_FALSE(is_same_secret(token, job_token({"key"}, "team", "alpaca", "u-1")));
  CHECK_FALSE(is_same_secret(token, job_token({"key"}, "team", "llama", "u-2")));
  CHECK(is_same_secret(token, job_token({"key"}, "team", "llama", "u-1")));
}

TEST_CASE("job_token: an empty key is refused, a token is compared as a whole", "[token]") {
  CHECK_THROWS_AS(job_token({""}, "team", "llama", "u-1"), std::logic_error);
  CHECK_FALSE(is_same_secret("abc", "ab"));
  CHECK_FALSE(is_same_secret("", "a"));
  CHECK(is_same_secret("", ""));
}

TEST_CASE("authorities_proof: HMAC-SHA256 under the job's token, as the trainer checks it", "[token]") {
  // printf 'trainyard-authorities-1%sPEM' "$NONCE" | openssl dgst -sha256 -hmac secret
  const std::string nonce = std::string(32, 'a') + std::string(32, 'b');
  CHECK(authorities_proof("secret", nonce, "PEM") == "c49cb4842e3b1b1bdd31ad6d532a78e66b76cda70dfe623c70de66c73fa29fc3");
  CHECK(authorities_proof("secret", nonce, "PEN") != authorities_proof("secret", nonce, "PEM"));
  CHECK_THROWS_AS(authorities_proof("", nonce, "PEM"), std::logic_error);
}

TEST_CASE("OperatorKey: random ones have 32 bytes and differ", "[token]") {
  const OperatorKey a = OperatorKey::random(), b = OperatorKey::random();
  CHECK(a.bytes.size() == 32);
  CHECK(a.bytes != b.bytes);
}
