#include "telemetry/progress_endpoint.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace trainyard;
using namespace trainyard::telemetry;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// An endpoint that leads and knows team/llama, uid u-1, generation 2; and what it handed on.
struct Fixture {
  std::vector<std::pair<std::string, api::ProgressPost>> seen;
  ProgressEndpoint endpoint{{"key"},
                            [this](const std::string& ns, const std::string& name, const api::ProgressPost& post) {
                              seen.emplace_back(ns + "/" + name, post);
                            }};
  Fixture() {
    endpoint.set_leading(true);
    endpoint.track("team", "llama", {"u-1", 2});
  }

  int post(const std::string& body, milliseconds at = {},
           const std::string& token = job_token({"key"}, "team", "llama", "u-1"),
           const std::string& path = "/progress/team/llama") {
    return endpoint
        .answer({.method = "POST", .path = path, .bearer = token, .body = body},
                ProgressEndpoint::Clock::time_point(at), TimePoint(at))
        .status;
  }
};

}  // namespace

TEST_CASE("progress: a post with the job's token is handed on", "[progress]") {
  Fixture fixture;
  CHECK(fixture.post(R"({"step": 5, "generation": 2})", seconds(9)) == 204);
  CHECK(fixture.post(R"({"step": 6})", seconds(10)) == 204);
  REQUIRE(fixture.seen.size() == 2);
  CHECK(fixture.seen[0].first == "team/llama");
  CHECK(fixture.seen[0].second.progress.step == 5);
  CHECK(fixture.seen[0].second.progress.updated == TimePoint(seconds(9)));
}

TEST_CASE("progress: who has no or another token is refused without a word about the right one", "[progress]") {
  Fixture fixture;
  const std::string body = R"({"step": 5})", other = job_token({"key"}, "team", "llama", "u-2");
  CHECK(fixture.post(body, {}, "") == 401);
  CHECK(fixture.post(body, {}, other) == 403);
  CHECK(fixture.post(body, {}, other.substr(0, 10)) == 403);
  fixture.endpoint.track("team", "alpaca", {"u-3", 1});
  CHECK(fixture.post(body, {}, job_token({"key"}, "team", "llama", "u-1"), "/progress/team/alpaca") == 403);
  for (int i = 0; i < 100; ++i) fixture.post(body, {}, other);
  CHECK(fixture.post(body) == 204);  // the rate is the job's own
  CHECK(fixture.seen.size() == 1);
}

TEST_CASE("progress: who signs the operator is proven by the job's token, which is not asked for", "[progress]") {
  Fixture fixture;
  fixture.endpoint.set_trust({"key"}, "PEM");
  fixture.endpoint.set_leading(GENERATE(true, false));  // each replica knows it
  const std::string nonce(64, 'a'), path = "/progress/team/llama/authorities";
  const auto ask = [&](const std::string& body, const std::string& where, const std::string& method = "POST") {
    return fixture.endpoint.answer({.method = method, .path = where, .body = body}, {}, {});
  };
  const http::Response answer = ask(nonce, path);
  CHECK(answer.status == 200);
  const std::string token = job_token({"key"}, "team", "llama", "u-1");
  CHECK(Json::parse(answer.body) ==
        Json{{"authorities", "PEM"}, {"proof", authorities_proof(token, nonce, "PEM")}});
  CHECK(answer.body.find(token) == std::string::npos);
  CHECK(ask(std::string(63, 'a'), path).status == 400);
  CHECK(ask(std::string(64, 'g'), path).status == 400);
  CHECK(ask(nonce, "/progress/team/alpaca/authorities").status == 404);
  CHECK(ask(nonce, path, "GET").status == 405);
  CHECK(fixture.seen.empty());
}

TEST_CASE("progress: a job called authorities is a job", "[progress]") {
  Fixture fixture;
  fixture.endpoint.track("team", "authorities", {"u-9", 1});
  CHECK(fixture.post(R"({"step": 5})", {}, job_token({"key"}, "team", "authorities", "u-9"),
                     "/progress/team/authorities") == 204);
}

TEST_CASE("progress: unknown jobs, paths and methods", "[progress]") {
  Fixture fixture;
  const auto* const path = GENERATE("/progress/team/unknown", "/progress/team", "/progress/", "/progress//llama",
                                    "/progress/team/", "/progress/team/llama/x", "/", "/metrics");
  CHECK(fixture.post(R"({"step": 5})", {}, "token", path) == 404);
  CHECK(fixture.endpoint.answer({.method = "GET", .path = "/progress/team/llama"}, {}, {}).status == 405);
}

TEST_CASE("progress: a malformed body is 400 with the reason", "[progress]") {
  Fixture fixture;
  const auto answer = fixture.endpoint.answer({.method = "POST",
                                               .path = "/progress/team/llama",
                                               .bearer = job_token({"key"}, "team", "llama", "u-1"),
                                               .body = R"({"step": "x"})"},
                                              {}, {});
  CHECK(answer.status == 400);
  CHECK(answer.body == "step is of type string; an integer from 0 on is expected\n");
}

TEST_CASE("progress: more than three at once, then more than one a second, is 429", "[progress]") {
  Fixture fixture;
  const std::string body = R"({"step": 5})";
  for (int i = 0; i < 3; ++i) CHECK(fixture.post(body, seconds(100)) == 204);
  CHECK(fixture.post(body, seconds(100)) == 429);
  CHECK(fixture.post(body, milliseconds(100'900)) == 429);
  CHECK(fixture.post(body, milliseconds(101'100)) == 204);
  CHECK(fixture.post(body, milliseconds(101'200)) == 429);
  CHECK(fixture.post(body, seconds(200)) == 204);
}

TEST_CASE("progress: only the current generation's posts count", "[progress]") {
  Fixture fixture;
  CHECK(fixture.post(R"({"step": 900, "generation": 1})") == 409);
  fixture.endpoint.track("team", "llama", {"u-1", 3});
  CHECK(fixture.post(R"({"step": 900, "generation": 2})") == 409);
  CHECK(fixture.post(R"({"step": 9, "generation": 3})") == 204);
  CHECK(fixture.seen.size() == 1);
}

TEST_CASE("progress: a job that was made anew under its name has another token", "[progress]") {
  Fixture fixture;
  fixture.endpoint.track("team", "llama", {"u-9", 1});
  CHECK(fixture.post(R"({"step": 5})") == 403);
  fixture.endpoint.forget("team", "llama");
  CHECK(fixture.post(R"({"step": 5})") == 404);
}

TEST_CASE("progress: a replica that does not lead sends its client on", "[progress]") {
  Fixture fixture;
  fixture.endpoint.set_leading(false);
  const auto answer =
      fixture.endpoint.answer({.method = "POST", .path = "/progress/team/llama", .bearer = "x"}, {}, {});
  CHECK(answer.status == 503);
  CHECK(answer.close);
  CHECK(answer.retry_after_seconds == 1);
}

TEST_CASE("progress: a step that repeats does not move the job, and one that changes does, backwards too",
          "[progress]") {
  Fixture fixture;
  const auto advanced = [&](const char* body, seconds at) {
    CHECK(fixture.post(body, at) == 204);
    return fixture.seen.back().second.progress.advanced;
  };
  CHECK(advanced(R"({"step": 5})", seconds(10)) == TimePoint(seconds(10)));
  CHECK(advanced(R"({"step": 5})", seconds(20)) == TimePoint(seconds(10)));
  CHECK(advanced(R"({"step": 6})", seconds(30)) == TimePoint(seconds(30)));
  CHECK(advanced(R"({"step": 4})", seconds(40)) == TimePoint(seconds(40)));
  fixture.endpoint.track("team", "llama", {"u-1", 3});
  CHECK(advanced(R"({"step": 4})", seconds(50)) == TimePoint(seconds(50)));
}

TEST_CASE("progress: what the status knew counts when the operator starts", "[progress]") {
  Fixture fixture;
  fixture.endpoint.forget("team", "llama");
  fixture.endpoint.track("team", "llama", {"u-1", 2}, api::Progress{.step = 5, .advanced = TimePoint(seconds(1))});
  CHECK(fixture.post(R"({"step": 5})", seconds(20)) == 204);
  CHECK(fixture.seen.back().second.progress.advanced == TimePoint(seconds(1)));
}

TEST_CASE("progress: what the job itself posts and cannot be taken is told once, with the last that was taken",
          "[progress]") {
  Fixture fixture;
  CHECK(fixture.post(R"({"step": 5})", seconds(10)) == 204);
  for (const int second : {20, 30}) CHECK(fixture.post(R"({"step": "x"})", seconds(second)) == 400);
  REQUIRE(fixture.seen.size() == 2);
  CHECK(fixture.seen[1].second.progress.step == 5);
  CHECK(fixture.seen[1].second.generation == 2);
  CHECK(fixture.seen[1].second.refusal == "step is of type string; an integer from 0 on is expected");
  CHECK(fixture.post(R"({"step": 5, "generation": 1})", seconds(40)) == 409);  // of a gang that is over
  CHECK(fixture.post(R"({"step": "x"})", seconds(50), "another's token") == 403);
  CHECK(fixture.seen.size() == 2);
  CHECK(fixture.post(R"({"step": 6})", seconds(60)) == 204);
  CHECK(fixture.seen.back().second.refusal.empty());
}

TEST_CASE("progress: a post is of the gang that is tracked, and tells how long a step takes", "[progress]") {
  Fixture fixture;
  fixture.post(R"({"step": 5})", seconds(10));
  CHECK(fixture.seen.back().second.generation == 2);
  CHECK(fixture.seen.back().second.seconds_a_step == 0);
  fixture.post(R"({"step": 9})", seconds(30));
  CHECK(fixture.seen.back().second.seconds_a_step == 5);
  fixture.post(R"({"step": 9})", seconds(90));
  CHECK(fixture.seen.back().second.seconds_a_step == 5);
}
