#include "local/startup_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <thread>

#include "local/refusal.h"

using namespace trainyard;
using namespace trainyard::local;
using namespace std::chrono_literals;

namespace {

/// A port of this machine that is listened at. It gives each client an answer, "" being none.
class Server {
 public:
  explicit Server(std::string answer) : answer_(std::move(answer)) {
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
      if (::read(client.get(), request.data(), request.size()) > 0)
        static_cast<void>(::send(client.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL));
    }
  }
  std::string answer_;
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

bool succeeds(const Json& how, const Json& ports = Json::array()) {
  StartupProbe probe(how, Json{{"name", "a"}, {"ports", ports}});
  probe.begin(TimePoint());
  probe.on_time(here(), TimePoint());
  if (probe.pid() == 0) return false;
  finish_try(probe);
  return probe.has_succeeded();
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

TEST_CASE("startupProbe: it asks in time, gives a try up, and fails at its threshold", "[startup_probe]") {
  StartupProbe probe(Json::parse(R"({"exec": {"command": ["sleep", "300"]}, "initialDelaySeconds": 5,
    "periodSeconds": 10, "timeoutSeconds": 2, "failureThreshold": 2})"),
                     Json{{"name", "a"}});
  const TimePoint begin(1000s);
  CHECK_FALSE(probe.next_time());
  probe.begin(begin);
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
  probe.begin(begin + 20s);
  CHECK_FALSE(probe.has_failed());
  CHECK(probe.next_time() == begin + 25s);
}

TEST_CASE("startupProbe: what takes a cluster is refused", "[startup_probe]") {
  struct Row {
    const char *probe, *problem;
  };
  const auto row = GENERATE(values<Row>({
      {R"({"grpc": {"port": 1}})", "exec, tcpSocket and httpGet with scheme HTTP work here"},
      {R"({"httpGet": {"port": 1, "scheme": "HTTPS"}})", "exec, tcpSocket and httpGet with scheme HTTP work here"},
      {R"({"httpGet": {"port": 1, "host": "example.org"}})", "host 'example.org' must be an address"},
      {R"({"tcpSocket": {"port": "web"}})", R"(port "web" is none of the container's)"},
      {R"({"tcpSocket": {"port": 0}})", "port 0 is none of the container's"},
  }));
  CHECK_THROWS_WITH(StartupProbe(Json::parse(row.probe), Json{{"name", "a"}}), Catch::Contains(row.problem));
}
