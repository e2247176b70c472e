#include "http/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <vector>

#include "http/listener.h"
#include "http_client.h"

using namespace trainyard;
using namespace trainyard::http;
using namespace trainyard::test;
using Catch::Contains;
using Catch::StartsWith;
using std::chrono::milliseconds;

namespace {

Response echo(const Request& request) {
  if (request.path == "/throw") throw std::runtime_error("a defect");
  return {.body =
              fmt::format("{} {} [{}] {} bytes", request.method, request.path, request.bearer, request.body.size())};
}

UniqueFd loopback() {
  return listen_on("127.0.0.1:0", "--test");
}

std::string post(size_t bytes) {
  return fmt::format("POST /p HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", bytes,
                     std::string(bytes, 'x'));
}

}  // namespace

TEST_CASE("server: method, path, token and body come to the handler", "[http]") {
  const Server server(loopback(), echo, {});
  CHECK_THAT(exchange(server.port(), get("/a%20b?query=1")), Contains("GET /a b [] 0 bytes"));
  CHECK_THAT(exchange(server.port(),
                      "POST /p HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
                      "Authorization: Bearer secret\r\nContent-Length: 3\r\n\r\nabc"),
             Contains("POST /p [secret] 3 bytes"));
  CHECK_THAT(exchange(server.port(),
                      "POST /p HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"),
             Contains("POST /p [] 5 bytes"));
  const std::string head = exchange(server.port(), "HEAD /h HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
  CHECK_THAT(head, StartsWith("HTTP/1.1 200") && Contains("Content-Length: 17") && !Contains("GET /h"));
}

TEST_CASE("server: a connection carries request after request", "[http]") {
  const Server server(loopback(), echo, {});
  const UniqueFd connection = connect_to(server.port());
  for (int i = 0; i < 3; ++i) {
    send_text(connection, fmt::format("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", i));
    CHECK_THAT(receive(connection, "bytes"), Contains(fmt::format("GET /{} []", i)));
  }
}

TEST_CASE("server: what a handler throws is a 500 that tells nothing of the inside", "[http]") {
  const Server server(loopback(), echo, {});
  const std::string answer = exchange(server.port(), get("/throw"));
  CHECK_THAT(answer, StartsWith("HTTP/1.1 500") && !Contains("a defect"));
}

TEST_CASE("server: a body over the limit is 413, announced or not, and one at the limit passes", "[http]") {
  const Server server(loopback(), echo, {.body_bytes = 1000});
  CHECK_THAT(exchange(server.port(), post(1000)), Contains("1000 bytes"));
  CHECK_THAT(exchange(server.port(), post(1001)), StartsWith("HTTP/1.1 413"));
  CHECK_THAT(exchange(server.port(), "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999\r\n\r\n"),
             StartsWith("HTTP/1.1 4"));
  std::string chunks = "POST /p HTTP/1.1\r\nHost: t\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 40; ++i) chunks += "64\r\n" + std::string(100, 'y') + "\r\n";
  CHECK_THAT(exchange(server.port(), chunks + "0\r\n\r\n"), StartsWith("HTTP/1.1 413"));
}

TEST_CASE("server: bodies on their way have a limit together, and it is free again when they are gone", "[http]") {
  const Server server(loopback(), echo, {.body_bytes = 1000, .all_bodies_bytes = 1500});
  {
    const UniqueFd slow = connect_to(server.port());
    send_text(slow, "POST /slow HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n" + std::string(990, 'x'));
    std::string answer;
    for (int i = 0; i < 1000 && !answer.starts_with("HTTP/1.1 503"); ++i) answer = exchange(server.port(), post(1000));
    CHECK_THAT(answer, StartsWith("HTTP/1.1 503") && Contains("Retry-After: 1"));
    CHECK_THAT(exchange(server.port(), post(500)), Contains("500 bytes"));
    send_text(slow, "1234567890");
    CHECK_THAT(receive(slow, "bytes"), Contains("POST /slow [] 1000 bytes"));
  }
  for (int i = 0; i < 5; ++i) CHECK_THAT(exchange(server.port(), post(1000)), Contains("1000 bytes"));
}

TEST_CASE("server: headers over the limit and bytes that are no HTTP end in an error or in silence", "[http]") {
  const Server server(loopback(), echo, {.request_time = milliseconds(500)});
  CHECK_THAT(exchange(server.port(), "GET / HTTP/1.1\r\nHost: t\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"),
             StartsWith("HTTP/1.1 431"));
  for (const std::string& garbage :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), std::string(5000, '\0'),
        std::string("\r\n\r\n\r\n"), std::string("GET\r\n\r\n"), std::string(3000, '\xff') + "\r\n\r\n"}) {
    const std::string answer = exchange(server.port(), garbage);
    CHECK_THAT(answer, !StartsWith("HTTP/1.1 200") && !Contains("nothing more came"));
  }
  CHECK_THAT(exchange(server.port(), get("/after")), Contains("GET /after"));
}

TEST_CASE("server: a client that sends a byte now and then is cut off when its time is over", "[http]") {
  const Server server(loopback(), echo, {.request_time = milliseconds(300), .idle_time = milliseconds(300)});
  const UniqueFd silent = connect_to(server.port());
  const UniqueFd dripping = connect_to(server.port());
  send_text(dripping, "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 10000\r\n\r\n");
  const auto start = std::chrono::steady_clock::now();
  std::string answer = "(nothing more came)";
  while (answer.ends_with("(nothing more came)") &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
    send_text(dripping, "x");
    pollfd readable{dripping.get(), POLLIN, 0};
    if (::poll(&readable, 1, 20) == 1) answer = receive(dripping);
  }
  CHECK(answer == "");
  CHECK(receive(silent) == "");

  const UniqueFd idle = connect_to(server.port());
  send_text(idle, "GET /idle HTTP/1.1\r\nHost: t\r\n\r\n");
  CHECK_THAT(receive(idle), Contains("GET /idle") && !Contains("nothing more came"));  // until the server closes it
}

TEST_CASE("server: thousands of idle and dripping connections do not keep a probe from its answer", "[http]") {
  raise_open_file_limit();
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const size_t count = std::min<size_t>(2500, (files.rlim_cur - 300) / 2);  // both ends are in this process
  const Server server(loopback(), echo, {.connections = 12'000});
  std::vector<UniqueFd> idle;
  for (size_t i = 0; i < count; ++i) {
    idle.push_back(connect_to(server.port()));
    if (i % 2 == 0) send_text(idle.back(), "GET / HTT");
  }
  CHECK_THAT(exchange(server.port(), get("/healthz")), Contains("GET /healthz"));
  for (size_t i = 0; i < count; i += 2) send_text(idle[i], "P");
  CHECK_THAT(exchange(server.port(), get("/healthz")), Contains("GET /healthz"));
}

TEST_CASE("server: it ends while connections are open and requests half sent", "[http]") {
  std::vector<UniqueFd> open;
  {
    const Server server(loopback(), echo, {.threads = 2});
    for (int i = 0; i < 50; ++i) {
      open.push_back(connect_to(server.port()));
      send_text(open.back(), "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nabc");
    }
    CHECK_THAT(exchange(server.port(), get("/")), Contains("GET /"));
  }
  for (const UniqueFd& connection : open) CHECK(receive(connection).find("nothing more came") == std::string::npos);
}
