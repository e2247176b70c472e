#include "kube/reply.h"

#include <catch2/catch.hpp>
#include <random>

#include "kube/exec_plugin.h"
#include "kube/list_page.h"
#include "kube/list_watch.h"
#include "kube/retry.h"
#include "kube/watch.h"

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

Outcome answer(int status, const std::string& reason, std::optional<std::chrono::milliseconds> retry_after = {}) {
  return {
      .status = status,
      .retry_after = retry_after,
      .body = dump({{"kind", "Status"}, {"reason", reason}, {"message", "as the server words it"}, {"code", status}})};
}

TEST_CASE("answers become the errors that callers tell apart", "[kube]") {
  struct Row {
    int status;
    const char* reason;
    ErrorKind read, write;
  };
  const Row row = GENERATE(values<Row>({
      {400, "BadRequest", ErrorKind::Invalid, ErrorKind::Invalid},
      {401, "Unauthorized", ErrorKind::Unauthorized, ErrorKind::Unauthorized},
      {403, "Forbidden", ErrorKind::Forbidden, ErrorKind::Forbidden},
      {404, "NotFound", ErrorKind::NotFound, ErrorKind::NotFound},
      {409, "AlreadyExists", ErrorKind::AlreadyExists, ErrorKind::AlreadyExists},
      {409, "Conflict", ErrorKind::Conflict, ErrorKind::Conflict},
      {410, "Expired", ErrorKind::Gone, ErrorKind::Gone},
      {400, "Expired", ErrorKind::Gone, ErrorKind::Gone},
      {415, "UnsupportedMediaType", ErrorKind::Invalid, ErrorKind::Invalid},
      {422, "Invalid", ErrorKind::Invalid, ErrorKind::Invalid},
      {429, "TooManyRequests", ErrorKind::TooMany, ErrorKind::TooMany},
      {500, "InternalError", ErrorKind::Server, ErrorKind::Unknown},
      {502, "", ErrorKind::Server, ErrorKind::Unknown},
      {503, "ServiceUnavailable", ErrorKind::Server, ErrorKind::Unknown},
      {504, "Timeout", ErrorKind::Server, ErrorKind::Unknown},
  }));
  CAPTURE(row.status, row.reason);
  const ApiError error = error_of(answer(row.status, row.reason), Method::Get);
  CHECK(error.kind == row.read);
  CHECK(error_of(answer(row.status, row.reason), Method::Patch).kind == row.write);
  CHECK(error.message == "as the server words it");
  CHECK(error.http_status == row.status);
}

TEST_CASE("a 503 that says when to come back has not begun with a write", "[kube]") {
  CHECK(error_of(answer(503, "", 1s), Method::Post).kind == ErrorKind::Server);
}

TEST_CASE("a connection that ended leaves a write unknown once it was sent, and only then", "[kube]") {
  const Trouble trouble = GENERATE(Trouble::Broken, Trouble::TimedOut);
  CHECK(error_of({.trouble = trouble, .was_sent = true}, Method::Post).kind == ErrorKind::Unknown);
  CHECK(error_of({.trouble = trouble, .was_sent = false}, Method::Post).kind == ErrorKind::NotSent);
  CHECK(error_of({.trouble = trouble}, Method::Get).kind == ErrorKind::Unknown);
  CHECK(error_of({.trouble = Trouble::Unreachable}, Method::Post).kind == ErrorKind::NotSent);
}

TEST_CASE("the wait that the server asks for is the longer of header and body", "[kube]") {
  Outcome outcome = answer(429, "TooManyRequests", 2s);
  CHECK(error_of(outcome, Method::Get).retry_after == 2000ms);
  outcome.body = R"({"kind":"Status","details":{"retryAfterSeconds":7}})";
  CHECK(error_of(outcome, Method::Get).retry_after == 7000ms);
  outcome.body = R"({"kind":"Status","details":{"retryAfterSeconds":99999999999999}})";
  CHECK(error_of(outcome, Method::Get).retry_after == 1h);
}

TEST_CASE("an answer that is no Status is quoted on one line, shortened", "[kube]") {
  const ApiError error = error_of({.status = 502, .body = "<html>\n" + std::string(100'000, 'x')}, Method::Get);
  CHECK(error.message.starts_with("HTTP 502: <html> xxx"));
  CHECK(error.message.size() < 1200);
}

TEST_CASE("a delete's reply tells what is gone from what is going", "[kube]") {
  const auto is_gone_after = [](const char* text) { return is_gone(Json::parse(text)); };
  CHECK(is_gone_after(R"({"kind":"Status","status":"Success"})"));
  CHECK(is_gone_after(R"({"kind":"Pod","metadata":{"name":"a"}})"));
  CHECK(is_gone_after(R"({"kind":"Pod","metadata":{"deletionTimestamp":"t","deletionGracePeriodSeconds":0}})"));
  CHECK_FALSE(is_gone_after(R"({"kind":"Pod","metadata":{"deletionTimestamp":"t","deletionGracePeriodSeconds":30}})"));
  CHECK_FALSE(is_gone_after(
      R"({"kind":"Pod","metadata":{"deletionTimestamp":"t","deletionGracePeriodSeconds":0,"finalizers":["f"]}})"));
}

TEST_CASE("what is repeated: reads after any trouble, writes only where they have not happened", "[kube]") {
  std::mt19937_64 random(1);
  const auto is_repeated = [&](ErrorKind kind, bool is_write) {
    return Retry().after({.kind = kind}, is_write, false, 0s, random).has_value();
  };
  for (const ErrorKind kind : {ErrorKind::TooMany, ErrorKind::Server, ErrorKind::NotSent}) {
    CHECK(is_repeated(kind, false));
    CHECK(is_repeated(kind, true));
  }
  CHECK(is_repeated(ErrorKind::Unknown, false));
  CHECK_FALSE(is_repeated(ErrorKind::Unknown, true));
  for (const ErrorKind kind : {ErrorKind::NotFound, ErrorKind::AlreadyExists, ErrorKind::Conflict, ErrorKind::Gone,
                               ErrorKind::Invalid, ErrorKind::Forbidden, ErrorKind::Unauthorized})
    CHECK_FALSE(is_repeated(kind, false));
}

TEST_CASE("waits grow with jitter, hold what the server asks for, and end", "[kube]") {
  std::mt19937_64 random(GENERATE(range(0, 20)));
  Retry retry;
  auto longest = 100ms;
  for (int attempt = 1; attempt < Retry::kAttempts; ++attempt, longest *= 2) {
    const auto wait = retry.after({.kind = ErrorKind::Server}, false, false, 0s, random);
    REQUIRE(wait);
    CHECK(*wait >= longest / 2);
    CHECK(*wait <= longest);
  }
  CHECK_FALSE(retry.after({.kind = ErrorKind::Server}, false, false, 0s, random));
  const auto asked = Retry().after({.kind = ErrorKind::TooMany, .retry_after = 4s}, true, false, 0s, random);
  CHECK((asked >= 4s && asked <= 6s));
  CHECK_FALSE(Retry().after({.kind = ErrorKind::TooMany, .retry_after = 4s}, true, false, 57s, random));
  CHECK_FALSE(Retry().after({.kind = ErrorKind::NotSent}, true, /*is_final=*/true, 0s, random));
}

TEST_CASE("a page gives its items one by one, whatever the order of its fields", "[kube]") {
  const char* const body = GENERATE(
      R"({"kind":"PodList","metadata":{"resourceVersion":"12","continue":"abc","x":{}},"items":[{"a":{"b":1}},{"c":[{"d":2}]}]})",
      R"({"items":[{"a":{"b":1}},{"c":[{"d":2}]}],"kind":"List","metadata":{"continue":"abc","resourceVersion":"12"}})");
  std::vector<std::string> items;
  const auto page = parse_list_page(body, [&](const Json& item) { items.push_back(dump(item)); });
  REQUIRE(page);
  CHECK(page->version == 12);
  CHECK(page->continue_token == "abc");
  CHECK(items == std::vector<std::string>{R"({"a":{"b":1}})", R"({"c":[{"d":2}]})"});
}

TEST_CASE("what is cut off or no list is no page", "[kube]") {
  for (const char* const body : {"", "null", "[]", "{}", R"({"metadata":{"resourceVersion":"12"}})", R"({"items":[]})",
                                 R"({"items":[],"metadata":{"resourceVersion":"x"}})", R"({"items":[{"a":1},{"b)"})
    CHECK_FALSE(parse_list_page(body, [](const Json&) {}));
}

TEST_CASE("watch lines are events, or nothing", "[kube]") {
  const auto event = parse_watch_event(R"({"type":"MODIFIED","object":{"kind":"Pod"}})");
  REQUIRE(event);
  CHECK(event->type == WatchEvent::Type::Modified);
  CHECK(text_at(event->object, "/kind") == "Pod");
  for (const char* const line : {"", "{}", R"({"type":"NEW","object":{}})", R"({"type":"ADDED"})",
                                 R"({"type":"ADDED","object":[]})", R"({"type":"ADDED","object":{"a":)"})
    CHECK_FALSE(parse_watch_event(line));
  CHECK(error_of_status(Json::parse(R"({"kind":"Status","code":410,"reason":"Expired"})")).kind == ErrorKind::Gone);
}

using Ended = std::optional<ApiError>;

bool lists(const ListWatchAction& action, const std::string& token = "") {
  const auto* const page = std::get_if<AskPage>(&action.next);
  return page && page->continue_token == token;
}
bool watches(const ListWatchAction& action) {
  return std::holds_alternative<OpenWatch>(action.next);
}

TEST_CASE("a list goes on page by page, then a watch, and a page that fails is asked for again, later each time",
          "[kube]") {
  std::mt19937_64 random(1);
  ListWatch it(random);
  CHECK(lists(it.start()));
  CHECK(lists(it.page_arrived("p2"), "p2"));
  const auto first = it.page_failed({.kind = ErrorKind::Server});
  CHECK(lists(first, "p2"));
  CHECK((first.wait >= 100ms && first.wait <= 200ms));
  static_cast<void>(it.page_failed({.kind = ErrorKind::Server}));
  const auto third = it.page_failed({.kind = ErrorKind::Server});
  CHECK((third.wait >= 400ms && third.wait <= 800ms));
  const auto watch = it.page_arrived("");
  CHECK(watches(watch));
  CHECK(watch.wait == 0ms);
}

TEST_CASE("a page that is too old begins the list anew: at once, and then with pauses", "[kube]") {
  std::mt19937_64 random(1);
  ListWatch it(random);
  static_cast<void>(it.page_arrived("p2"));
  const auto first = it.page_failed({.kind = ErrorKind::Gone});
  CHECK(lists(first));
  CHECK(first.wait == 0ms);
  CHECK(it.page_failed({.kind = ErrorKind::Gone}).wait > 0ms);
}

TEST_CASE("a list that is begun anew in its midst begins with the first page", "[kube]") {
  std::mt19937_64 random(1);
  ListWatch it(random);
  static_cast<void>(it.page_arrived("p2"));
  CHECK(lists(it.start()));
  CHECK(lists(it.page_failed({.kind = ErrorKind::Server})));
}

TEST_CASE("a watch that ends is resumed, one that is too old is followed by a list", "[kube]") {
  std::mt19937_64 random(1);
  ListWatch it(random);
  const auto resumed = it.watch_ended(Ended{}, /*was_useful=*/true);
  CHECK(watches(resumed));
  CHECK(resumed.wait == 0ms);
  const auto broken = it.watch_ended(Ended{{.kind = ErrorKind::Unknown}}, true);
  CHECK(watches(broken));
  CHECK(broken.wait >= 50ms);
  CHECK(it.watch_ended(Ended{}, false).wait >= 50ms);  // ended at once: no busy loop
  CHECK(lists(it.watch_ended(Ended{{.kind = ErrorKind::Gone}}, false)));
}

TEST_CASE("a server that is away does not cost a list, and a version that no watch opens from does", "[kube]") {
  std::mt19937_64 random(1);
  ListWatch it(random);
  for (int time = 0; time < 50; ++time) CHECK(watches(it.watch_ended(Ended{{.kind = ErrorKind::NotSent}}, false)));
  int failures = 1;
  while (watches(it.watch_ended(Ended{{.kind = ErrorKind::Server}}, false))) ++failures;
  CHECK(failures == ListWatch::kWatchFailuresToRelist);
}

TEST_CASE("stale lists are asked for again with pauses, and believed in the end", "[kube]") {
  std::mt19937_64 random(1);
  ListWatch it(random);
  for (int time = 0; time < ListWatch::kStaleListsToBelieve; ++time) {
    CHECK_FALSE(it.believes_stale_lists());
    CHECK(lists(it.list_is_stale()));
  }
  CHECK(it.believes_stale_lists());
  static_cast<void>(it.page_arrived(""));
  CHECK_FALSE(it.believes_stale_lists());
}

TEST_CASE("a plugin's answer is taken as it should be, and refused with what is wrong", "[kube]") {
  const ExecPlugin plugin{
      .where = "/k: users[u].user.exec", .api_version = "client.authentication.k8s.io/v1", .command = "aws"};
  const auto parse = [&](const std::string& status, const std::string& version = "client.authentication.k8s.io/v1") {
    return parse_exec_credential(
        R"({"kind":"ExecCredential","apiVersion":")" + version + R"(","status":)" + status + "}", plugin);
  };
  const auto good = parse(R"({"token":"t","expirationTimestamp":"2026-11-21T10:00:00Z"})");
  REQUIRE(good);
  CHECK(good.value().token == "t");
  CHECK(good.value().expires == parse_time("2026-11-21T10:00:00Z"));
  CHECK(parse("{}").error().message.find("neither status.token") != std::string::npos);
  CHECK(parse(R"({"clientKeyData":"k"})").error().message.find("without the other") != std::string::npos);
  CHECK(parse(R"({"token":"t","expirationTimestamp":"soon"})").error().message.find("'soon'") != std::string::npos);
  CHECK(parse(R"({"token":"t"})", "v9").error().message.find("'v9'") != std::string::npos);
  CHECK(parse_exec_credential("password: ", plugin)
            .error()
            .message.starts_with("/k: users[u].user.exec: aws printed no"));
}

}  // namespace
}  // namespace trainyard::kube
