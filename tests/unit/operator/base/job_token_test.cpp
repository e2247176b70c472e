#include "base/job_token.h"

#include <catch2/catch.hpp>

using namespace trainyard;

TEST_CASE("job_token: HMAC-SHA256 of namespace/name/uid, in hex", "[token]") {
  // printf 'team/llama/u-1' | openssl dgst -sha256 -hmac key
  CHECK(job_token({"key"}, "team", "llama", "u-1") ==
        "2103734906e2365f9a8ddd312b0b9b6a460ed852b764ef916da504d345184397");
}

TEST_CASE("job_token: another key, namespace, name or uid gives another token", "[token]") {
  const std::string token = job_token({"key"}, "team", "llama", "u-1");
  CHECK_FALSE(is_same_token(token, job_token({"yek"}, "team", "llama", "u-1")));
  CHECK_FALSE(is_same_token(token, job_token({"key"}, "meat", "llama", "u-1")));
  CHECK_FALSE(is_same_token(token, job_token({"key"}, "team", "alpaca", "u-1")));
  CHECK_FALSE(is_same_token(token, job_token({"key"}, "team", "llama", "u-2")));
  CHECK(is_same_token(token, job_token({"key"}, "team", "llama", "u-1")));
}

TEST_CASE("job_token: an empty key is refused, a token is compared as a whole", "[token]") {
  CHECK_THROWS_AS(job_token({""}, "team", "llama", "u-1"), std::logic_error);
  CHECK_FALSE(is_same_token("abc", "ab"));
  CHECK_FALSE(is_same_token("", "a"));
  CHECK(is_same_token("", ""));
}

TEST_CASE("OperatorKey: random ones have 32 bytes and differ", "[token]") {
  const OperatorKey a = OperatorKey::random(), b = OperatorKey::random();
  CHECK(a.bytes.size() == 32);
  CHECK(a.bytes != b.bytes);
}
