#include "s3/answer.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "s3/client.h"

using namespace trainyard;
using namespace trainyard::s3;
using web::Failure;

namespace {

web::Answer error(long status, const std::string& code, const std::string& more = "") {
  return {.status = status, .text = "<Error><Code>" + code + "</Code><Message>why</Message>" + more + "</Error>"};
}

std::string refusal(const web::Answer& answer) {
  try {
    refuse(answer, "s3://bucket/key", "the profile 'a'", {.region = "us-east-1"});
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

}  // namespace

TEST_CASE("s3: an answer that is not good says what to mend", "[s3]") {
  CHECK_THAT(refusal(error(404, "NoSuchBucket")), Catch::Contains("no such bucket at Amazon S3 in us-east-1"));
  CHECK_THAT(refusal(error(404, "NoSuchKey")), Catch::Contains("s3://bucket/key: there is no such object"));
  CHECK_THAT(refusal(error(403, "AccessDenied")),
             Catch::Contains("denies access to the credentials of the profile 'a'"));
  CHECK_THAT(refusal(error(403, "SignatureDoesNotMatch")), Catch::Contains("does not take the credentials of"));
  CHECK_THAT(refusal(error(403, "RequestTimeTooSkewed")), Catch::Contains("clocks"));
  CHECK_THAT(refusal(error(403, "InvalidObjectState")), Catch::Contains("archived"));
  CHECK_THAT(refusal({.status = 403}), Catch::Contains("denies access"));
  CHECK_THAT(refusal({.failure = Failure::Unreachable, .reason = "r"}), Catch::Contains("AWS_ENDPOINT_URL_S3"));
  CHECK_THROWS_AS(refuse({.failure = Failure::Unreachable}, "w", "s", {}), UnreachableError);
  CHECK_THROWS_AS(refuse({.failure = Failure::Cut}, "w", "s", {}), PeerError);
  CHECK_THROWS_AS(refuse(error(503, "SlowDown"), "w", "s", {}), PeerError);
  CHECK_THROWS_AS(refuse(error(400, "MalformedXML"), "w", "s", {}), InputError);
}

TEST_CASE("s3: a bucket of another region is one error, which names the region", "[s3]") {
  const auto names = Catch::Contains("the bucket lies in eu-west-1, but us-east-1 was asked; set AWS_REGION=eu-west-1");
  CHECK_THAT(refusal(error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>")), names);
  CHECK_THAT(refusal({.status = 301, .headers = {{"x-amz-bucket-region", "eu-west-1"}}}), names);
  CHECK_THAT(refusal(error(301, "PermanentRedirect")), Catch::Contains("redirects elsewhere"));
}

TEST_CASE("s3: what may pass is asked again, and what may not is not", "[s3]") {
  const auto passes = [](const web::Answer& answer) { return may_pass(answer, told_by(answer)); };
  CHECK(passes(error(503, "SlowDown")));
  CHECK(passes(error(400, "XAmzContentSHA256Mismatch")));
  CHECK(passes(error(400, "RequestTimeout")));
  CHECK(passes(error(409, "ConditionalRequestConflict")));
  CHECK(passes({.failure = Failure::Cut}));
  CHECK_FALSE(passes(error(412, "PreconditionFailed")));
  CHECK_FALSE(passes(error(403, "AccessDenied")));
  CHECK(has_expired(told_by(error(400, "ExpiredToken"))));
  RetryBudget budget;
  int taken = 0;
  while (taken < 1000 && budget.take()) ++taken;
  CHECK(taken == 100);
  budget.give_back(1);
  CHECK(budget.take());
  CHECK_FALSE(budget.take());
}

TEST_CASE("s3: a page of a list is read, with keys of any characters", "[s3]") {
  const Page page = page_of(
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>"
      "<Contents><Key>a+b%2Bc/%C3%A4</Key><Size>7</Size><ETag>&quot;e&quot;</ETag></Contents></ListBucketResult>",
      "w");
  REQUIRE(page.objects.size() == 1);
  CHECK(page.objects[0].key == "a b+c/ä");
  CHECK(page.objects[0].size == 7);
  CHECK(page.objects[0].etag == "\"e\"");
  CHECK(page.next == "n");
  CHECK(page_of("<ListBucketResult><Contents><Key>a+b</Key><Size>0</Size></Contents></ListBucketResult>", "w")
            .objects[0]
            .key == "a+b");
  CHECK_THROWS_WITH(page_of("<html></html>", "w"), Catch::Contains("no list of a bucket"));
  CHECK_THROWS_WITH(page_of("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "w"),
                    Catch::Contains("no next page"));
  CHECK_THROWS_WITH(page_of("<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>", "w"),
                    Catch::Contains("no size"));
}

TEST_CASE("s3: what a server tells of an object's bytes is told from what it tells of parts", "[s3]") {
  const std::string md5(32, 'a');
  const auto facts = [&](std::map<std::string, std::string> headers) {
    headers.emplace("content-length", "3");
    headers.emplace("etag", '"' + md5 + '"');
    return facts_of({.status = 200, .headers = headers}, "w");
  };
  CHECK(facts({}).md5 == md5);
  CHECK(facts({}).size == 3);
  CHECK(facts({{"etag", '"' + md5 + "-2\""}}).md5.empty());
  CHECK(facts({{"x-amz-server-side-encryption", "aws:kms"}}).md5.empty());
  CHECK(facts({{"x-amz-server-side-encryption", "AES256"}}).md5 == md5);
  CHECK(facts({{"x-amz-checksum-crc32c", "AAAAAA=="}}).checksums.at("crc32c") == "AAAAAA==");
  CHECK(facts({{"x-amz-checksum-crc32c", "AAAAAA==-2"}}).checksums.empty());
  CHECK(facts({{"x-amz-checksum-crc32", "AAAAAA=="}, {"x-amz-checksum-type", "COMPOSITE"}}).checksums.empty());
  const std::string in_parts = '"' + md5 + "-3\"";
  CHECK(facts({{"etag", in_parts}, {"x-amz-checksum-crc32", "AAAAAA=="}}).checksums.empty());
  CHECK(facts({{"etag", in_parts}, {"x-amz-checksum-crc64nvme", "AAAAAAAAAAA="}}).checksums.size() == 1);
  CHECK(facts({{"etag", in_parts}, {"x-amz-checksum-crc32", "AAAAAA=="}, {"x-amz-checksum-type", "FULL_OBJECT"}})
            .checksums.size() == 1);
  CHECK_THROWS_WITH(facts_of({.status = 200}, "w"), Catch::Contains("no size or no ETag"));
}
