#include "kube/client.h"

#include <catch2/catch.hpp>
#include <optional>

#include "scripted_server.h"
#include "support/support.h"

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;
using Turn = ScriptedServer::Turn;

const std::string kThing = R"({"kind":"Thing"})";

struct Session {
  EventLoop loop;
  Client client;
  explicit Session(const std::string& server, ClientSettings settings = {})
      : client(loop, Config{.endpoint = {.server = server}}, std::move(settings)) {}

  Result<Json> call(Request request) {
    std::optional<Result<Json>> result;
    client.call(std::move(request), [&](Result<Json> reply) {
      result = std::move(reply);
      loop.stop();
    });
    loop.run();
    return *result;
  }
};

Request post() {
  return create("/api/v1/things", {{"a", 1}});
}

TEST_CASE("a request goes out as the API wants it", "[kube]") {
  ScriptedServer server({{http_answer("201 Created", kThing)}});
  Session session(server.url());
  const auto reply = session.call(merge_patch("/api/v1/things/a", {{"b", 2}}));
  REQUIRE(reply);
  CHECK(reply.value() == Json{{"kind", "Thing"}});
  const std::string& request = server.requests().at(0);
  CHECK(request.starts_with("PATCH /api/v1/things/a HTTP/1.1\r\n"));
  CHECK(request.find("\r\nContent-Type: application/merge-patch+json\r\n") != std::string::npos);
  CHECK(request.find("\r\nAccept: application/json\r\n") != std::string::npos);
  CHECK(request.find("\r\nExpect:") == std::string::npos);
  CHECK(request.ends_with("\r\n\r\n{\"b\":2}"));
}

TEST_CASE("a write whose connection ends without an answer is unknown, and sent once", "[kube]") {
  const bool resets = GENERATE(false, true);
  ScriptedServer server({{.resets = resets}, {http_answer("201 Created", kThing)}});
  Session session(server.url());
  const auto reply = session.call(post());
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::Unknown);
  CHECK(server.requests().size() == 1);
}

TEST_CASE("also on a connection that was used before: libcurl does not repeat it by itself", "[kube]") {
  const bool is_delete = GENERATE(false, true);
  ScriptedServer server({{http_answer("200 OK", kThing), true}, {}, {http_answer("201 Created", kThing)}});
  Session session(server.url());
  REQUIRE(session.call(get("/x")));
  const auto reply = session.call(is_delete ? remove("/x") : post());
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::Unknown);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("a write cut off in its answer is unknown, and a read is asked again", "[kube]") {
  const std::string half = http_answer("200 OK", kThing).substr(0, 80);
  ScriptedServer for_write({{half}});
  CHECK(Session(for_write.url()).call(post()).error().kind == ErrorKind::Unknown);
  ScriptedServer for_read({{half}, {.resets = true}, {http_answer("200 OK", kThing)}});
  CHECK(Session(for_read.url()).call(get("/x")).ok());
}

TEST_CASE("429 and 503 with a time are waited out, for writes too, and other failures of writes are not repeated",
          "[kube]") {
  ScriptedServer server({{http_answer("429 Too Many Requests", "{}")},
                         {http_answer("503 Service Unavailable", "{}", "Retry-After: 0\r\n"), true},
                         {http_answer("201 Created", kThing)}});
  Session session(server.url());
  const auto first = session.call(post());
  CHECK(first.error().kind == ErrorKind::Unknown);  // "Retry-After: 0" promises nothing
  CHECK(session.client.counts().retries == 1);
  CHECK(session.client.limit() < 64);
}

TEST_CASE("a read is repeated after 5xx and no answer at all", "[kube]") {
  ScriptedServer server({{http_answer("500 Internal Server Error", "{}")}, {}, {http_answer("200 OK", kThing)}});
  Session session(server.url());
  CHECK(session.call(get("/x")).ok());
  CHECK(session.client.counts().requests == 3);
}

TEST_CASE("an observer is told of each attempt, also of one without an answer", "[kube]") {
  ScriptedServer server({{http_answer("500 Internal Server Error", "{}")}, {}, {http_answer("200 OK", kThing)}});
  Session session(server.url());
  std::vector<int> statuses;
  session.client.set_observer([&](const Exchange& one) {
    CHECK(one.path == "/x");
    statuses.push_back(one.status);
  });
  CHECK(session.call(get("/x")).ok());
  CHECK(statuses == std::vector<int>{500, 0, 200});
}

TEST_CASE("where nobody listens nothing was sent, and the message says where", "[kube]") {
  const auto port = std::to_string(test::free_port());
  Session session("http://127.0.0.1:" + port);
  const auto reply = session.call(post());
  CHECK(reply.error().kind == ErrorKind::NotSent);
  CHECK(reply.error().message.find(port) != std::string::npos);
}

TEST_CASE("an answer that does not come in time ends the request, and the next one takes another connection",
          "[kube]") {
  ScriptedServer server({{http_answer("200 OK", kThing), true, false, 1500ms}, {http_answer("200 OK", kThing)}});
  Session session(server.url());
  Request slow = post();
  slow.timeout = 500ms;
  CHECK(session.call(std::move(slow)).error().kind == ErrorKind::Unknown);
}

TEST_CASE("an answer over the limit is not taken", "[kube]") {
  ScriptedServer server({{http_answer("200 OK", "\"" + std::string(2000, 'x') + "\"")}});
  Session session(server.url(), {.body_limit = 1000});
  const auto reply = session.call(get("/x"));
  CHECK(reply.error().kind == ErrorKind::Invalid);
  CHECK(reply.error().message.find("1000 bytes") != std::string::npos);
  CHECK(server.requests().size() == 1);
}

TEST_CASE("a write that needs the lease leaves only while it is held", "[kube]") {
  ScriptedServer server({{http_answer("200 OK", kThing)}});
  Session session(server.url());
  session.client.set_write_guard([] { return false; });
  CHECK(session.call(post()).error().kind == ErrorKind::NotSent);
  Request own = post();
  own.needs_lease = false;
  CHECK(session.call(std::move(own)).ok());
  CHECK(server.requests().size() == 1);
}

TEST_CASE("a write that was begun under the lease does not leave once it is lost", "[kube]") {
  ScriptedServer server({{http_answer("200 OK", kThing)}});
  Session session(server.url());
  int asked = 0;
  session.client.set_write_guard([&] { return ++asked == 1; });
  CHECK(session.call(post()).error().kind == ErrorKind::NotSent);
  CHECK(asked == 3);  // as it is begun, as its body leaves, and as it is tried again
  CHECK(server.requests().empty());
}

TEST_CASE("a full queue says so", "[kube]") {
  Session session("http://127.0.0.1:" + std::to_string(test::free_port()), {.queue_limit = 2});
  std::vector<std::string> ends;
  for (int number = 0; number < 3; ++number)
    session.client.call(post(), [&](const Result<Json>& reply) {
      ends.push_back(reply.error().message);
      if (ends.size() == 3) session.loop.stop();
    });
  session.loop.run();
  CHECK(ends.at(0) == "2 requests wait for the API server already");
}

TEST_CASE("writes and single objects go before lists", "[kube]") {
  std::vector<Turn> turns(4, Turn{http_answer("200 OK", kThing)});
  ScriptedServer server(turns);
  Session session(server.url(), {.qps = 1000, .burst = 1});
  int left = 4;
  const auto done = [&](const Result<Json>&) {
    if (--left == 0) session.loop.stop();
  };
  for (const char* const path : {"/list1", "/list2"}) {
    Request list = get(path);
    list.priority = Priority::Bulk;
    session.client.call(list, done);
  }
  session.client.call(get("/one"), done);
  session.client.call(post(), done);
  session.loop.run();
  std::string order;
  for (const std::string& request : server.requests()) order += request.substr(0, request.find(" HTTP")) + ", ";
  CHECK(order.starts_with("GET /one, POST /api/v1/things, "));
}

std::string chunk(const std::string& text) {
  char size[16];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return size + text + "\r\n";
}

const std::string kStream = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kAdded = R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})";

struct WatchLog {
  std::vector<std::string> events;
  std::optional<std::optional<ApiError>> end;

  static WatchLog of(const std::string& answer, ClientSettings settings = {}, bool stays_open = false) {
    ScriptedServer server({{answer, stays_open, false, 0ms}, {}});
    Session session(server.url(), std::move(settings));
    WatchLog log;
    const Watch watch = session.client.watch(
        "/watch", [&](const WatchEvent& event) { log.events.push_back(text_at(event.object, "/metadata/name")); },
        [&](const std::optional<ApiError>& error) {
          log.end = error;
          session.loop.stop();
        });
    session.loop.run();
    return log;
  }
};

TEST_CASE("a watch gives whole events until the server ends it", "[kube]") {
  const auto whole =
      WatchLog::of(kStream + chunk(kAdded.substr(0, 9)) + chunk(kAdded.substr(9) + "\n" + kAdded + "\n") + "0\r\n\r\n");
  CHECK(whole.events == std::vector<std::string>{"a", "a"});
  CHECK_FALSE(whole.end->has_value());
  const auto cut = WatchLog::of(kStream + chunk(kAdded + "\n" + kAdded));
  CHECK(cut.events.size() == 1);
  CHECK(cut.end->value().kind == ErrorKind::Unknown);
}

TEST_CASE("a watch ends with the reason: refused, gone, not JSON, a line too long, silent", "[kube]") {
  CHECK(WatchLog::of(http_answer("410 Gone", "{}")).end->value().kind == ErrorKind::Gone);
  CHECK(WatchLog::of(http_answer("403 Forbidden", "{}")).end->value().kind == ErrorKind::Forbidden);
  CHECK(WatchLog::of(kStream + chunk("<html>\n")).end->value().message.find("no event") != std::string::npos);
  CHECK(WatchLog::of(kStream + chunk(std::string(200, 'x')), {.watch_line_limit = 100})
            .end->value()
            .message.find("limit") != std::string::npos);
  const auto silent = WatchLog::of(kStream + chunk(kAdded + "\n"), {.watch_stall = 1s}, true);
  CHECK(silent.events.size() == 1);
  CHECK(silent.end->has_value());
}

TEST_CASE("a watch that its own event ends is not heard of again", "[kube]") {
  ScriptedServer server({{kStream + chunk(kAdded + "\n" + kAdded + "\n") + "0\r\n\r\n"}});
  Session session(server.url());
  int events = 0, ends = 0;
  Watch watch;
  watch = session.client.watch(
      "/watch",
      [&](const WatchEvent&) {
        ++events;
        watch.cancel();
        session.loop.after(50ms, [&] { session.loop.stop(); });
      },
      [&](const std::optional<ApiError>&) { ++ends; });
  session.loop.run();
  CHECK(events == 1);
  CHECK(ends == 0);
}

TEST_CASE("timers run in their order, cancelled ones never, and posts come from any thread", "[kube]") {
  EventLoop loop;
  std::string order;
  loop.after(20ms, [&] { order += "c", loop.stop(); });
  loop.after(0ms, [&] { order += "a"; });
  loop.cancel(loop.after(1ms, [&] { order += "X"; }));
  loop.after(2ms, [&] { order += "b"; });
  std::thread([&] { loop.post([&] { order += "p"; }); }).join();
  loop.run();
  CHECK(order.size() == 4);
  order.erase(order.find('p'), 1);
  CHECK(order == "abc");
}

Subprocess::Ended ended(Subprocess::Command command) {
  EventLoop loop;
  std::optional<Subprocess::Ended> result;
  const Subprocess process(loop, std::move(command), [&](Subprocess::Ended end) {
    result = std::move(end);
    loop.stop();
  });
  loop.run();
  return *result;
}

TEST_CASE("a program beside the loop is bounded in time and output, its children included", "[kube]") {
  const auto fine = ended({.arguments = {"sh", "-c", "echo $A; echo oh >&2; exit 3"}, .environment = {"A=b"}});
  CHECK(fine.output == "b\n");
  CHECK(fine.complaint == "oh\n");
  CHECK(fine.exit_code == 3);
  CHECK(fine.problem.empty());
  CHECK(ended({.arguments = {"sh", "-c", "kill -9 $$"}}).exit_code == 137);
  CHECK(ended({.arguments = {"/nonexistent/plugin"}}).problem.find("No such file") != std::string::npos);
  CHECK(ended({.arguments = {"sh", "-c", "sleep 60"}, .timeout = 100ms}).problem.find("has not ended") !=
        std::string::npos);
  CHECK(ended({.arguments = {"sh", "-c", "sleep 60 & echo done"}}).output == "done\n");
  CHECK(ended({.arguments = {"yes"}, .output_limit = 1000}).problem.find("more than 1000 bytes") != std::string::npos);
}

}  // namespace
}  // namespace trainyard::kube
