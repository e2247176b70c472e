#include "s3/settings.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "support/support.h"

using namespace trainyard;
using namespace trainyard::s3;

namespace {

std::string address(const Environment& environment, const Name& name) {
  const Settings settings = settings_of(environment);
  return server_of(settings, name.bucket) + path_of(settings, name);
}

}  // namespace

TEST_CASE("s3: a bucket of Amazon's is a host, and one of another server is a path", "[s3]") {
  const Name name{"bucket", "a b/ü+.txt"};
  CHECK(address({}, name) == "https://bucket.s3.us-east-1.amazonaws.com/a%20b/%C3%BC%2B.txt");
  CHECK(address({{"AWS_DEFAULT_REGION", "eu-west-1"}}, {"bucket", ""}) == "https://bucket.s3.eu-west-1.amazonaws.com/");
  CHECK(address({{"AWS_REGION", "cn-north-1"}, {"AWS_DEFAULT_REGION", "x"}}, {"bucket", "k"}) ==
        "https://bucket.s3.cn-north-1.amazonaws.com.cn/k");
  CHECK(address({}, {"with.dots", "k"}) == "https://s3.us-east-1.amazonaws.com/with.dots/k");
  CHECK(address({{"AWS_ENDPOINT_URL", "http://minio:9000/"}}, {"bucket", "k"}) == "http://minio:9000/bucket/k");
  CHECK(address({{"AWS_ENDPOINT_URL", "http://minio:9000"}}, {"bucket", ""}) == "http://minio:9000/bucket");
  CHECK(address({{"AWS_ENDPOINT_URL_S3", "http://own"}, {"AWS_ENDPOINT_URL", "http://all"}}, {"bucket", "k"}) ==
        "http://own/bucket/k");
}

TEST_CASE("s3: a profile says what the environment does not", "[s3]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "config",
                        "[default]\nregion = eu-west-1  # a comment\n"
                        "[profile work]\nregion=eu-north-1\nservices = local\ns3 =\n  addressing_style = virtual\n"
                        "  max_concurrent_requests = 20\nca_bundle = /ca.pem\n"
                        "[services local]\ns3 =\n  endpoint_url = http://minio:9000\n");
  const std::string file = (folder / "config").string();
  CHECK(settings_of({{"AWS_CONFIG_FILE", file}}).region == "eu-west-1");
  const Settings work = settings_of({{"AWS_CONFIG_FILE", file}, {"AWS_PROFILE", "work"}});
  CHECK(work.region == "eu-north-1");
  CHECK(work.authorities == "/ca.pem");
  CHECK(server_of(work, "bucket") == "http://bucket.minio:9000");
  CHECK(settings_of({{"AWS_CONFIG_FILE", file}, {"AWS_PROFILE", "work"}, {"AWS_REGION", "us-west-2"}}).region ==
        "us-west-2");
  CHECK(
      settings_of({{"AWS_CONFIG_FILE", file}, {"AWS_PROFILE", "work"}, {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"}})
          .endpoint.empty());
  CHECK_THROWS_WITH(settings_of({{"AWS_CONFIG_FILE", file}, {"AWS_PROFILE", "home"}}),
                    Catch::Contains("AWS_PROFILE is 'home'") && Catch::Contains(file));
}

TEST_CASE("s3: a line of a file that is neither a section nor a setting is named, and not what it holds", "[s3]") {
  CHECK_THROWS_WITH(parse_sections("[a]\nsecret\n", "f"), Catch::StartsWith("f:2:") && !Catch::Contains("secret"));
  CHECK_THROWS_WITH(parse_sections("a = b\n", "f"), Catch::StartsWith("f:1:"));
  CHECK_THROWS_WITH(parse_sections("[a\n", "f"), Catch::StartsWith("f:1:"));
  const auto sections = parse_sections("; x\r\n[ profile  a ]\r\nkey = a=b#c ; d\r\nkey2=\r\nkey3 = 1\r\n", "f");
  REQUIRE(sections.contains("profile a"));
  CHECK(sections.at("profile a") == Section{{"key", "a=b#c"}, {"key2", ""}, {"key3", "1"}});
}

TEST_CASE("s3: a variable that does not fit is named", "[s3]") {
  CHECK_THROWS_WITH(settings_of({{"AWS_REGION", "eu/west"}}), Catch::Contains("AWS_REGION is 'eu/west'"));
  CHECK_THROWS_WITH(settings_of({{"AWS_MAX_ATTEMPTS", "0"}}), Catch::Contains("AWS_MAX_ATTEMPTS is '0'"));
  CHECK_THROWS_WITH(settings_of({{"AWS_USE_FIPS_ENDPOINT", "true"}}), Catch::Contains("AWS_ENDPOINT_URL_S3"));
  const std::string endpoint = GENERATE("minio:9000", "ftp://x", "https://user:secret@x", "https://x/path", "http://");
  CHECK_THROWS_WITH(settings_of({{"AWS_ENDPOINT_URL", endpoint}}),
                    Catch::StartsWith("AWS_ENDPOINT_URL must be") && !Catch::Contains("secret"));
}

TEST_CASE("s3: objects are kept where other caches of the user are", "[s3]") {
  CHECK(settings_of({{"HOME", "/home/a"}}).cache == "/home/a/.cache/trainyard/s3");
  CHECK(settings_of({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/x"}}).cache == "/x/trainyard/s3");
  CHECK(settings_of({{"TRAINYARD_CACHE", "/c"}, {"XDG_CACHE_HOME", "/x"}}).cache == "/c/s3");
}
