#include "s3/name.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "s3/fetch.h"

using namespace trainyard;
using namespace trainyard::s3;

TEST_CASE("s3: a name is a bucket and a key", "[s3]") {
  CHECK(parse_name("s3://bucket/a/b c.txt") == Name{"bucket", "a/b c.txt"});
  CHECK(parse_name("s3://my.bucket-1") == Name{"my.bucket-1", ""});
  CHECK(parse_name("s3://bucket/folder/") == Name{"bucket", "folder/"});
  CHECK(to_string({"bucket", "a/b"}) == "s3://bucket/a/b");
  CHECK_FALSE(is_name("S3://bucket/a"));
  CHECK_FALSE(is_name("data/s3://x"));
}

TEST_CASE("s3: what is no name says why", "[s3]") {
  CHECK_THROWS_WITH(parse_name("s3://"), Catch::Contains("3 to 63 letters"));
  CHECK_THROWS_WITH(parse_name("s3:///key"), Catch::Contains("3 to 63 letters"));
  CHECK_THROWS_WITH(parse_name("s3://user:secret@host/key"), Catch::Contains("3 to 63 letters"));
  CHECK_THROWS_WITH(parse_name("s3://bucket/a/../b"), Catch::Contains("'.' or '..'"));
  CHECK_THROWS_WITH(parse_name("s3://bucket/a\nb"), Catch::Contains("cannot be printed"));
  CHECK_THROWS_WITH(parse_name("s3://bucket/" + std::string(1025, 'a')), Catch::Contains("1024 bytes"));
}

TEST_CASE("s3: a version behind a name is one of 32 digits, and any other '#' is the key's", "[s3]") {
  const std::string version(32, 'a');
  const Wanted wanted = parse_wanted(with_version({"bucket", "a#b"}, version));
  CHECK(wanted.name == Name{"bucket", "a#b"});
  CHECK(wanted.version == version);
  CHECK(parse_wanted("s3://bucket/a#1").name.key == "a#1");
  CHECK(parse_wanted("s3://bucket/a#1").version.empty());
}
