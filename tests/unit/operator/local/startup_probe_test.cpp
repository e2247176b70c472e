#include "local/containers/startup_probe.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/text.h"
#include "http/listener.h"
#include "http/server.h"
#include "local/manifest/refusal.h"
#include "support/support.h"
#include "webhook/certificate.h"

using namespace trainyard;
using namespace trainyard::local;
using namespace std::chrono_literals;

namespace {

/// A port of this machine that is listened at. It gives each request an answer, "" being none.
class Server {
 public:
  using Answers = std::function<std::string(const std::string& request)>;
  explicit Server(const std::string& answer) : Server([answer](const std::string&) { return answer; }) {}
  explicit Server(Answers answers) : answers_(std::move(answers)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket_.get(), 8) == 0);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { serve(); });
  }
  ~Server() { ::shutdown(socket_.get(), SHUT_RDWR); }
  [[nodiscard]] int port() const { return port_; }

 private:
  void serve() const {
    for (;;) {
      const UniqueFd client(::accept(socket_.get(), nullptr, nullptr));
      if (!client.valid()) return;
      std::array<char, 1024> request{};
      const ssize_t got = ::read(client.get(), request.data(), request.size());
      if (got <= 0) continue;
      const std::string answer = answers_(std::string(request.data(), static_cast<size_t>(got)));
      static_cast<void>(::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
    }
  }
  Answers answers_;
  UniqueFd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port_ = 0;
  std::jthread thread_;
};

Program here() {
  return {.command = {"sleep", "300"}, .environment = {"PATH=/usr/bin:/bin"}, .folder = "/", .root = {}, .staging = ""};
}

/// Waits for the try that is under way, and tells the probe.
void finish_try(StartupProbe& probe) {
  int status = 0;
  const pid_t pid = probe.pid();
  REQUIRE(pid > 0);
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK_FALSE(probe.on_end(pid + 1, status));
  CHECK(probe.on_end(pid, status));
}

std::string outcome_of(const Json& how, const Json& ports = Json::array()) {
  StartupProbe probe(how, Json{{"name", "a"}, {"ports", ports}});
  probe.begin(::getpid(), TimePoint());
  probe.on_time(here(), TimePoint());
  if (probe.pid() == 0) return "no try";
  finish_try(probe);
  return !probe.has_succeeded() ? "failure" : probe.is_redirected() ? "redirect" : "success";
}

bool succeeds(const Json& how, const Json& ports = Json::array()) {
  const std::string outcome = outcome_of(how, ports);
  return outcome == "success" || outcome == "redirect";
}

}  // namespace

TEST_CASE("startupProbe: a command, a connection or an answer of HTTP decides", "[startup_probe]") {
  CHECK(succeeds(Json::parse(R"({"exec": {"command": ["true"]}})")));
  CHECK_FALSE(succeeds(Json::parse(R"({"exec": {"command": ["false"]}})")));
  CHECK_FALSE(succeeds(Json::parse(R"({"exec": {"command": ["no-such-program"]}})")));
  CHECK(succeeds(Json::parse(R"({"exec": {"command": ["timeout", "5", "seq", "100000"]}})")));  // nobody reads it
  for (const auto& [answer, is_well] : {std::pair{"HTTP/1.1 204 No Content\r\n\r\n", true},
                                        {"HTTP/1.0 302 Found\r\n\r\n", true},
                                        {"HTTP/1.1 404 Not Found\r\n\r\n", false},
                                        {"ready, more or less", false}}) {
    CAPTURE(answer);
    const Server server(answer);
    const Json ports = Json::array({{{"name", "web"}, {"containerPort", server.port()}}});
    CHECK(succeeds(Json{{"httpGet", {{"path", "/ready"}, {"port", server.port()}}}}) == is_well);
    CHECK(succeeds(Json{{"httpGet", {{"port", "web"}}}}, ports) == is_well);
    CHECK(succeeds(Json{{"tcpSocket", {{"port", "web"}}}}, ports));
  }
  int closed = 0;
  { closed = Server("").port(); }
  CHECK_FALSE(succeeds(Json{{"tcpSocket", {{"port", closed}}}}));
  CHECK_FALSE(succeeds(Json{{"httpGet", {{"port", closed}}}}));
}

TEST_CASE("startupProbe: a redirect to the same host is followed, and any other is a success that is warned of",
          "[startup_probe]") {
  struct Row {
    const char *location, *outcome;
  };
  const auto row = GENERATE(values<Row>({
      {"/ok", "success"},
      {"ok?x=1", "success"},
      {"//127.0.0.1:PORT/ok", "success"},
      {"http://127.0.0.1:PORT/ok", "success"},
      {"/bad", "failure"},
      {"/again/1", "success"},
      {"/for-ever", "failure"},
      {"http://localhost:PORT/bad", "redirect"},
      {"http://127.0.0.2:PORT/bad", "redirect"},
      {"https://127.0.0.1:PORT/ok", "failure"},  // there is no TLS
      {"", "redirect"},
  }));
  CAPTURE(row.location);
  std::string location = row.location;
  const auto to = [](const std::string& where) { return "HTTP/1.1 302 Found\r\nlocation: " + where + "\r\n\r\n"; };
  const Server server([&](const std::string& request) -> std::string {
    for (int i = 1; i < 8; ++i)
      if (request.starts_with(fmt::format("GET /again/{} ", i))) return to(fmt::format("/again/{}", i + 1));
    if (request.starts_with("GET /first ")) return to(location);
    if (request.starts_with("GET /for-ever ")) return to("/for-ever");
    const bool is_well = request.starts_with("GET /ok") || request.starts_with("GET /again/8 ");
    return is_well ? "HTTP/1.1 200 OK\r\n\r\n" : "HTTP/1.1 404 Not Found\r\n\r\nLocation: /ok\r\n\r\n";
  });
  replace_all(location, "PORT", std::to_string(server.port()));
  CHECK(outcome_of(Json{{"httpGet", {{"path", "/first"}, {"port", server.port()}}}}) == row.outcome);
}

TEST_CASE("startupProbe: a server is asked by the probe's address and path, with its headers", "[startup_probe]") {
  std::string asked;
  const Server server([&](const std::string& request) {
    asked = request;
    return "HTTP/1.1 200 OK\r\n\r\n";
  });
  CHECK(succeeds(Json{{"httpGet", {{"path", "a b?c=d"}, {"port", server.port()}}}}));
  CHECK(asked == fmt::format("GET /a%20b?c=d HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUser-Agent: kube-probe/trainyard\r\n"
                             "Accept: */*\r\nConnection: close\r\n\r\n",
                             server.port()));
  const Json headers = Json::parse(R"([{"name": "host", "value": "here"}, {"name": "A", "value": "b"},
    {"name": "B", "value": ""}, {"name": "user-agent", "value": ""}, {"name": "Accept", "value": "text/html"}])");
  CHECK(succeeds(Json{{"httpGet", {{"port", server.port()}, {"httpHeaders", headers}}}}));
  CHECK(asked == "GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nA: b\r\nB:\r\nAccept: text/html\r\n\r\n");
}

TEST_CASE("startupProbe: a server with TLS is asked, whoever signed its certificate", "[startup_probe]") {
  const TimePoint now = std::chrono::system_clock::now();
  const webhook::KeyPair authority = webhook::make_authority(now), pair = webhook::issue(authority, {"elsewhere"}, now);
  const http::Handler answer = [](const http::Request& request) {
    return http::Response{.status = request.path == "/ok" ? 200 : 404};
  };
  const http::Server secure(http::listen_on("127.0.0.1:0", "--test"), answer, {},
                            http::Identity{pair.certificate + authority.certificate, pair.key});
  const auto outcome = [](const char* scheme, int port, const char* path) {
    return outcome_of(Json{{"httpGet", {{"scheme", scheme}, {"path", path}, {"port", port}}}});
  };
  CHECK(outcome("HTTPS", secure.port(), "/ok") == "success");
  CHECK(outcome("HTTPS", secure.port(), "/bad") == "failure");
  CHECK(outcome("HTTP", secure.port(), "/ok") == "failure");
  const Server plain(fmt::format("HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:{}/ok\r\n\r\n", secure.port()));
  CHECK(outcome("HTTP", plain.port(), "/") == "success");
  CHECK(outcome("HTTPS", plain.port(), "/") == "failure");
}

TEST_CASE("startupProbe: of a long answer the beginning is read", "[startup_probe]") {
  const std::string content(100'000, 'x');
  const Server server(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n{}", content));
  CHECK(succeeds(Json{{"httpGet", {{"port", server.port()}}}}));
  const Server cut("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nx");
  CHECK_FALSE(succeeds(Json{{"httpGet", {{"port", cut.port()}}}}));
}

TEST_CASE("startupProbe: a command sees what its container writes into / itself", "[startup_probe]") {
  const test::TemporaryFolder folder;
  Program program = here();
  program.command = {"sh", "-c", "touch /trainyard-made; exec sleep 300"};
  program.root = plan_root({{"/scratch", folder.path()}});
  program.staging = folder / "root";
  std::filesystem::create_directory(program.staging);
  pid_t container = 0;
  try {
    container = start(program).pid;
  } catch (const Refusal&) {
    return test::skip("this kernel lets nobody mount");
  }
  StartupProbe probe(Json::parse(R"({"exec": {"command": ["test", "-e", "/trainyard-made"]}, "periodSeconds": 1,
    "failureThreshold": 10000})"),
                     Json{{"name", "a"}});
  probe.begin(container, TimePoint());
  for (TimePoint now; !probe.has_succeeded() && !probe.has_failed(); now += 1s) {
    probe.on_time(program, now);
    finish_try(probe);
  }
  CHECK(probe.has_succeeded());
  ::kill(-container, SIGKILL);
  ::waitpid(container, nullptr, 0);
  CHECK_FALSE(std::filesystem::exists("/trainyard-made"));
}

TEST_CASE("startupProbe: it asks in time, gives a try up, and fails at its threshold", "[startup_probe]") {
  StartupProbe probe(Json::parse(R"({"exec": {"command": ["sleep", "300"]}, "initialDelaySeconds": 5,
    "periodSeconds": 10, "timeoutSeconds": 2, "failureThreshold": 2})"),
                     Json{{"name", "a"}});
  const TimePoint begin(1000s);
  CHECK_FALSE(probe.next_time());
  probe.begin(::getpid(), begin);
  CHECK(probe.next_time() == begin + 5s);
  probe.on_time(here(), begin + 4s);
  CHECK(probe.pid() == 0);
  probe.on_time(here(), begin + 5s);
  const pid_t first = probe.pid();
  REQUIRE(first > 0);
  CHECK(probe.next_time() == begin + 7s);
  probe.on_time(here(), begin + 7s);
  CHECK(probe.pid() == 0);
  int status = 0;
  REQUIRE(::waitpid(first, &status, 0) == first);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK_FALSE(probe.on_end(first, status));
  CHECK_FALSE(probe.has_failed());
  CHECK(probe.next_time() == begin + 15s);
  probe.on_time(here(), begin + 15s);
  const pid_t second = probe.pid();
  probe.on_time(here(), begin + 17s);
  CHECK(probe.has_failed());
  CHECK_FALSE(probe.next_time());
  REQUIRE(::waitpid(second, &status, 0) == second);
  probe.begin(::getpid(), begin + 20s);
  CHECK_FALSE(probe.has_failed());
  CHECK(probe.next_time() == begin + 25s);
}

TEST_CASE("startupProbe: what takes a cluster is refused", "[startup_probe]") {
  struct Row {
    const char *probe, *problem;
  };
  const auto row = GENERATE(values<Row>({
      {R"({"grpc": {"port": 1}})", "exec, tcpSocket and httpGet work here"},
      {R"({"httpGet": {"port": 1, "host": "example.org"}})", "host 'example.org' must be an address"},
      {R"({"tcpSocket": {"port": "web"}})", R"(port "web" is none of the container's)"},
      {R"({"httpGet": {"port": 1, "path": "/\u0001"}})", "is no URL"},
      {R"({"tcpSocket": {"port": 0}})", "port 0 is none of the container's"},
  }));
  CHECK_THROWS_WITH(StartupProbe(Json::parse(row.probe), Json{{"name", "a"}}), Catch::Contains(row.problem));
}
