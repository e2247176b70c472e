#include "s3/credentials.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "support/support.h"

using namespace trainyard;
using namespace trainyard::s3;

namespace {

Credentials credentials_of(Environment environment) {
  environment.emplace("AWS_EC2_METADATA_DISABLED", "true");
  const Settings settings = settings_of(environment);
  return CredentialChain(settings).get();
}

}  // namespace

TEST_CASE("s3: keys of the environment come before those of files", "[s3]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "credentials",
                        "[default]\naws_access_key_id = OF-FILE\naws_secret_access_key = s\n"
                        "[work]\naws_access_key_id = OF-WORK\naws_secret_access_key = s\naws_session_token = t\n");
  const std::string file = (folder / "credentials").string();
  CHECK(credentials_of({{"AWS_SHARED_CREDENTIALS_FILE", file}}).access_key == "OF-FILE");
  const Credentials work = credentials_of({{"AWS_SHARED_CREDENTIALS_FILE", file}, {"AWS_PROFILE", "work"}});
  CHECK(work.access_key == "OF-WORK");
  CHECK(work.session_token == "t");
  CHECK(work.source == "the profile 'work'");
  CHECK(credentials_of(
            {{"AWS_SHARED_CREDENTIALS_FILE", file}, {"AWS_ACCESS_KEY_ID", "OF-ENV"}, {"AWS_SECRET_ACCESS_KEY", "s"}})
            .access_key == "OF-ENV");
}

TEST_CASE("s3: without credentials an error names what was looked for", "[s3]") {
  CHECK_THROWS_WITH(credentials_of({}),
                    Catch::Contains("AWS_ACCESS_KEY_ID") && Catch::Contains("AWS_EC2_METADATA_DISABLED is true"));
  CHECK_THROWS_WITH(credentials_of({{"AWS_ACCESS_KEY_ID", "a"}}),
                    Catch::Contains("AWS_ACCESS_KEY_ID is given without AWS_SECRET_ACCESS_KEY"));
  CHECK_THROWS_WITH(credentials_of({{"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}}),
                    Catch::Contains("AWS_WEB_IDENTITY_TOKEN_FILE is given without AWS_ROLE_ARN"));
}

TEST_CASE("s3: a profile of another kind says what would do", "[s3]") {
  const test::TemporaryFolder folder;
  const std::string setting =
      GENERATE("sso_session = a", "credential_process = /bin/a", "role_arn = arn:aws:iam::1:role/a");
  write_file_atomically(folder / "config", "[profile work]\n" + setting + "\n");
  CHECK_THROWS_WITH(credentials_of({{"AWS_CONFIG_FILE", (folder / "config").string()}, {"AWS_PROFILE", "work"}}),
                    Catch::Contains(setting.substr(0, setting.find(' '))) &&
                        Catch::Contains("aws configure export-credentials --profile work"));
}

TEST_CASE("s3: what agents and STS answer is read, and nothing of it stands in an error", "[s3]") {
  const Credentials json = credentials_in_json(
      R"({"AccessKeyId": "a", "SecretAccessKey": "s", "Token": "t", "Expiration": "2026-01-31T12:00:00Z"})", "here");
  CHECK(json.access_key == "a");
  CHECK(json.session_token == "t");
  CHECK(json.expires == std::chrono::system_clock::from_time_t(1769860800));
  const Credentials xml = credentials_in_xml(
      "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>a</AccessKeyId>"
      "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2026-01-31T12:00:00.5Z</"
      "Expiration>"
      "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
      "here");
  CHECK(xml.secret_key == "s");
  CHECK(xml.expires == json.expires);
  CHECK_THROWS_WITH(credentials_in_json(R"({"AccessKeyId": "a", "SecretAccessKey": "hush\n"})", "here"),
                    Catch::Equals("here: the answer holds no credentials"));
  CHECK_THROWS_WITH(
      credentials_in_json(R"({"AccessKeyId": "a", "SecretAccessKey": "s", "Expiration": "soon"})", "here"),
      Catch::Contains("Expiration"));
  CHECK_THROWS_WITH(credentials_in_json("hush", "here"), Catch::Equals("here: the answer is no JSON object"));
  CHECK_THROWS_WITH(credentials_in_xml("<A><B>hush</B></A>", "here"), !Catch::Contains("hush"));
}

TEST_CASE("s3: a container's token goes over https, or to this machine and its link alone", "[s3]") {
  CHECK(is_container_agent("http://169.254.170.23/v1/credentials"));
  CHECK(is_container_agent("http://[fd00:ec2::23]/v1/credentials"));
  CHECK(is_container_agent("http://127.0.0.1:8080/x"));
  CHECK(is_container_agent("https://agent.example/x"));
  CHECK_FALSE(is_container_agent("http://agent.example/x"));
  CHECK_FALSE(is_container_agent("http://127.0.0.1.example/x"));
  CHECK_FALSE(is_container_agent("ftp://127.0.0.1/x"));
  CHECK_THROWS_WITH(credentials_of({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://agent.example/x"}}),
                    Catch::Contains("a token goes there"));
}
