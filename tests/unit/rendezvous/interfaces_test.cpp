#include <catch2/catch.hpp>

#include "base/error.h"
#include "rendezvous/interfaces.h"

namespace trainyard::rendezvous {
namespace {

Interface interface_of(std::string name, const std::string& host) {
  return {std::move(name), resolve({host, 1}).addresses.at(0)};
}

const std::vector<Interface> kHost{interface_of("lo", "127.0.0.1"),   interface_of("docker0", "172.17.0.1"),
                                   interface_of("eth0", "10.0.0.7"),  interface_of("eth0", "fd00::7"),
                                   interface_of("eth01", "10.0.1.7"), interface_of("eth0", "fe80::7")};

std::string chosen(const std::string& rule, const std::string& route, Reach reach) {
  const auto address = route.empty() ? std::nullopt : std::optional(resolve({route, 1}).addresses.at(0));
  return choose_address({"NCCL_SOCKET_IFNAME", rule}, kHost, address, reach).host();
}

}  // namespace

TEST_CASE("InterfaceRule: prefixes, exact names and exclusions", "[rendezvous]") {
  struct Row {
    std::string rule, name;
    bool admitted;
  };
  const std::vector<Row> rows{
      {"", "eth0", true},           {"eth", "eth0", true},
      {"eth", "veth0", false},      {"ib,eth", "eth1", true},
      {"=eth0", "eth0", true},      {"=eth0", "eth01", false},
      {"^docker,lo", "lo", false},  {"^docker,lo", "docker0", false},
      {"^docker,lo", "eth0", true}, {"^=eth0", "eth01", true},
      {"=^eth0", "eth0", false},    {" eth0 , ib0", "ib0", true},
  };
  for (const Row& row : rows) {
    INFO(row.rule << " for " << row.name);
    CHECK(InterfaceRule("NCCL_SOCKET_IFNAME", row.rule).admits(row.name) == row.admitted);
  }
}

TEST_CASE("InterfaceRule: gloo's variable goes before NCCL's", "[rendezvous]") {
  CHECK(InterfaceRule::of({{"NCCL_SOCKET_IFNAME", "a"}, {"GLOO_SOCKET_IFNAME", "b"}}).text() == "GLOO_SOCKET_IFNAME=b");
  CHECK(InterfaceRule::of({{"NCCL_SOCKET_IFNAME", "a"}, {"GLOO_SOCKET_IFNAME", ""}}).text() == "NCCL_SOCKET_IFNAME=a");
  CHECK_FALSE(InterfaceRule::of({}).is_given());
}

TEST_CASE("choose_address: the route to the master, unless the rule or the peers ask for another", "[rendezvous]") {
  CHECK(chosen("", "10.0.1.7", Reach::ManyHosts) == "10.0.1.7");
  CHECK(chosen("", "fd00::7", Reach::ManyHosts) == "fd00::7");
  CHECK(chosen("", "127.0.0.1", Reach::OneHost) == "127.0.0.1");
  CHECK(chosen("^docker", "127.0.0.1", Reach::ManyHosts) == "10.0.0.7");
  CHECK(chosen("=eth0", "10.0.1.7", Reach::ManyHosts) == "10.0.0.7");
  CHECK(chosen("=eth0", "fd00::9", Reach::ManyHosts) == "fd00::7");
  CHECK(chosen("=eth0", "", Reach::ManyHosts) == "10.0.0.7");
  CHECK(chosen("lo", "10.0.0.7", Reach::ManyHosts) == "127.0.0.1");
}

TEST_CASE("choose_address: a rule that admits nothing lists the interfaces", "[rendezvous]") {
  CHECK_THROWS_AS(chosen("^docker,lo,veth,eth", "", Reach::ManyHosts), InputError);
  CHECK_THROWS_WITH(
      chosen("^docker,lo,veth,eth", "", Reach::ManyHosts),
      Catch::StartsWith(
          "NCCL_SOCKET_IFNAME=^docker,lo,veth,eth admits none of this host's network interfaces: lo (127.0.0.1)") &&
          Catch::Contains("eth0 (10.0.0.7)"));
}

TEST_CASE("local_interfaces: this host has its loopback", "[rendezvous]") {
  bool has_loopback = false;
  for (const Interface& one : local_interfaces()) has_loopback = has_loopback || one.address.host() == "127.0.0.1";
  CHECK(has_loopback);
}

}  // namespace trainyard::rendezvous
