#include "http/listener.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

using namespace trainyard;
using namespace trainyard::http;

TEST_CASE("parse_address: a numeric host and a port, and no host means all interfaces", "[http]") {
  CHECK(parse_address(":8080") == Address{"", 8080});
  CHECK(parse_address("127.0.0.1:0") == Address{"127.0.0.1", 0});
  CHECK(parse_address("[::1]:9443") == Address{"::1", 9443});
  CHECK(parse_address("0.0.0.0:65535") == Address{"0.0.0.0", 65535});
}

TEST_CASE("parse_address: everything else is none", "[http]") {
  const auto* const text = GENERATE("", "0", "8080", ":", ":x", ":65536", ":-1", ":80 ", "localhost:80", "::1:80",
                                    "[127.0.0.1]:80", "[]:80", "[::1]", "1.2.3:80", "a b:80");
  CAPTURE(text);
  CHECK_FALSE(parse_address(text).has_value());
}

TEST_CASE("listen_on: a port in use is said with address, flag and remedy", "[http]") {
  const UniqueFd first = listen_on("127.0.0.1:0", "--test");
  const std::string address = fmt::format("127.0.0.1:{}", port_of(first.get()));
  CHECK_THROWS_WITH(listen_on(address, "--webhook-server-port"),
                    "--webhook-server-port: cannot listen on " + address +
                        ": Address already in use; another process has the port: end that one, or choose another port");
}

TEST_CASE("listen_on: what is no address is said with its flag", "[http]") {
  CHECK_THROWS_WITH(listen_on("localhost:80", "--metrics-bind-address"),
                    R"(--metrics-bind-address: "localhost:80" is no address to listen on; give HOST:PORT with a )"
                    "numeric host, or :PORT for all interfaces");
  CHECK_THROWS_AS(listen_on("203.0.113.1:80", "--test"), ListenError);
}
