#include "hub/answer.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "hub/client.h"

using namespace trainyard;
using namespace trainyard::hub;
using web::is_worth_retry;
using web::pause_before;

namespace {

const std::string kCommit(40, 'c'), kSha256(64, 'a');
const Name kModel{.repo = "org/name", .revision = "v1"};
const Settings kWithoutToken{.endpoint = "https://h"}, kWithToken{.endpoint = "https://h", .token = "hf_secret"};

std::string refusal(const Answer& answer, const Settings& settings = kWithoutToken) {
  try {
    refuse(answer, kModel, "org/name@v1: config.json", settings);
  } catch (const std::exception& error) {
    return error.what();
  }
}

Answer with_code(long status, const std::string& code) {
  return {.status = status, .headers = {{"x-error-code", code}}};
}

Answer failed(Failure failure) {
  return {.failure = failure, .reason = "why"};
}

}  // namespace

TEST_CASE("hub: a large file is known by its sha256, another by git's name for it", "[hub]") {
  const FileFacts large = facts_of({.status = 302,
                                    .headers = {{"x-repo-commit", kCommit},
                                                {"x-linked-etag", '"' + kSha256 + '"'},
                                                {"x-linked-size", "123"},
                                                {"etag", "\"of-the-redirect\""},
                                                {"content-length", "7"},
                                                {"location", "https://cdn/x"}}},
                                   "f");
  CHECK(large.etag == kSha256);
  CHECK(large.size == 123u);
  CHECK(large.has_sha256);
  const FileFacts small = facts_of(
      {.status = 200, .headers = {{"x-repo-commit", kCommit}, {"etag", "W/\"abc\""}, {"content-length", "7"}}}, "f");
  CHECK(small.etag == "abc");
  CHECK(small.size == 7u);
  CHECK_FALSE(small.has_sha256);
  CHECK(small.commit == kCommit);
}

TEST_CASE("hub: an answer that is none of a hub's is told as that", "[hub]") {
  CHECK_THROWS_WITH(facts_of({.status = 200, .headers = {{"etag", "abc"}}}, "f"), Catch::Contains("names no commit"));
  const std::string etag = GENERATE("", "\"\"", "../x", "a/b", ".hidden", "a b");
  CHECK_THROWS_WITH(facts_of({.status = 200, .headers = {{"x-repo-commit", kCommit}, {"etag", etag}}}, "f"),
                    Catch::Contains("no ETag"));
}

TEST_CASE("hub: each way of not being let in has its message", "[hub]") {
  CHECK_THAT(refusal(with_code(401, "GatedRepo")), Catch::Contains("is gated; ask for access at https://h/org/name"));
  CHECK_THAT(refusal(with_code(403, "GatedRepo"), kWithToken), Catch::Contains("the one that was sent has none"));
  CHECK_THAT(refusal(with_code(404, "RevisionNotFound")), Catch::Contains("has no revision 'v1'"));
  CHECK_THAT(refusal(with_code(404, "EntryNotFound")), Catch::Contains("no such file at 'v1'"));
  CHECK_THAT(refusal(with_code(401, "RepoNotFound")), Catch::Contains("asked without a token"));
  CHECK_THAT(refusal(with_code(404, "RepoNotFound"), kWithToken), Catch::Contains("the token that was sent may not"));
  CHECK_THAT(refusal({.status = 403}), Catch::Contains("forbids it"));
  CHECK_THAT(refusal({.status = 418}), Catch::Contains("answered HTTP 418"));
  CHECK_THAT(refusal({.status = 401, .headers = {{"x-error-message", "Invalid credentials in Authorization header"}}},
                     kWithToken),
             Catch::Contains("does not know the token") && !Catch::Contains("hf_secret"));
}

TEST_CASE("hub: what a restart would mend is lost, all else is wrong", "[hub]") {
  const auto ends = [](const Answer& answer) { refuse(answer, kModel, "f", kWithoutToken); };
  CHECK_THROWS_AS(ends({.status = 503}), PeerError);
  CHECK_THROWS_AS(ends({.status = 429}), PeerError);
  CHECK_THROWS_AS(ends(failed(Failure::Cut)), PeerError);
  CHECK_THROWS_AS(ends(failed(Failure::TimedOut)), PeerError);
  CHECK_THROWS_AS(ends(failed(Failure::Unreachable)), UnreachableError);
  CHECK_THROWS_AS(ends(failed(Failure::Distrusted)), InputError);
  CHECK_THROWS_AS(ends({.status = 404}), InputError);
}

TEST_CASE("hub: what may pass is asked again, each time later, or when the server says", "[hub]") {
  using std::chrono::milliseconds;
  CHECK(is_worth_retry({.status = 503}));
  CHECK(is_worth_retry(failed(Failure::Cut)));
  CHECK_FALSE(is_worth_retry({.status = 404}));
  CHECK_FALSE(is_worth_retry(failed(Failure::Distrusted)));
  CHECK_FALSE(is_worth_retry(failed(Failure::Stopped)));
  CHECK(pause_before(1, {}) == milliseconds(250));
  CHECK(pause_before(3, {}) == milliseconds(1000));
  CHECK(pause_before(40, {}) == milliseconds(8000));
  CHECK(pause_before(1, {.status = 429, .headers = {{"retry-after", "7"}}}) == milliseconds(7000));
  CHECK(pause_before(1, {.status = 429, .headers = {{"retry-after", "99999"}}}) == milliseconds(60000));
}
