#include "s3/signature.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/hmac.h"

using namespace trainyard;
using namespace trainyard::s3;

namespace {

const std::string kEmpty = hex(sha256(""));

/// "… Signature=abc" is abc.
std::string signature_in(const std::string& authorization) {
  return authorization.substr(authorization.find("Signature=") + 10);
}

}  // namespace

TEST_CASE("s3: requests are signed as in the examples of the documentation of Amazon S3", "[s3]") {
  // docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
  const std::string access = "AKIAIOSFODNN7EXAMPLE", secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  const Scope scope{.region = "us-east-1", .service = "s3", .time = "20130524T000000Z"};
  const auto signature_of = [&](Request request) {
    request.headers["host"] = "examplebucket.s3.amazonaws.com";
    request.headers["x-amz-content-sha256"] = request.payload;
    request.headers["x-amz-date"] = scope.time;
    return signature_in(authorization(request, scope, access, secret));
  };
  CHECK(signature_of({.method = "GET", .path = "/test.txt", .headers = {{"range", "bytes=0-9"}}, .payload = kEmpty}) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(signature_of(
            {.method = "PUT",
             .path = "/test%24file.text",
             .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
             .payload = hex(sha256("Welcome to Amazon S3."))}) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  CHECK(signature_of({.method = "GET", .path = "/", .query = {{"lifecycle", ""}}, .payload = kEmpty}) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(
      signature_of({.method = "GET", .path = "/", .query = {{"prefix", "J"}, {"max-keys", "2"}}, .payload = kEmpty}) ==
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("s3: requests are signed as in AWS's test suite of Signature Version 4", "[s3]") {
  const Scope scope{.region = "us-east-1", .service = "service", .time = "20150830T123600Z"};
  const auto signature_of = [&](Request request) {
    request.headers["host"] = "example.amazonaws.com";
    request.headers["x-amz-date"] = scope.time;
    request.payload = kEmpty;
    return signature_in(authorization(request, scope, "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"));
  };
  CHECK(signature_of({.method = "GET", .path = "/"}) ==  // get-vanilla
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  CHECK(signature_of({.method = "POST", .path = "/"}) ==  // post-vanilla
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  CHECK(signature_of({.method = "GET", .path = "/", .query = {{"Param2", "value2"}, {"Param1", "value1"}}}) ==
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");  // get-vanilla-query-order-key-case
  CHECK(signature_of({.method = "GET", .path = "/%E1%88%B4"}) ==              // get-utf8
        "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
  CHECK(signature_of({.method = "GET", .path = "/", .headers = {{"my-header1", " a   b   c "}}}) ==
        signature_of({.method = "GET", .path = "/", .headers = {{"my-header1", "a b c"}}}));
}

TEST_CASE("s3: a query is sent in the order and in the letters that are signed", "[s3]") {
  CHECK(canonical_query({}).empty());
  CHECK(canonical_query({{"b", "2"}, {"a", "x/y z+"}, {"a", "1"}, {"uploads", ""}}) ==
        "a=1&a=x%2Fy%20z%2B&b=2&uploads=");
}

TEST_CASE("s3: a signature tells neither the secret key nor anything but digests of it", "[s3]") {
  const std::string text =
      authorization({.method = "GET", .path = "/", .payload = kEmpty},
                    {.region = "r", .service = "s3", .time = "20130524T000000Z"}, "id", "a-secret");
  CHECK(text.starts_with("AWS4-HMAC-SHA256 Credential=id/20130524/r/s3/aws4_request, SignedHeaders="));
  CHECK(text.find("a-secret") == std::string::npos);
  CHECK(time_to_sign(std::chrono::system_clock::from_time_t(1369353600)) == "20130524T000000Z");
}
