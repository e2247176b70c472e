#include "local/addresses.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "common/unique_fd.h"
#include "decide/objects/environment.h"
#include "local/manifest/expand.h"

using namespace trainyard;
using namespace trainyard::local;

TEST_CASE("with_loopback: names of the job's services become the loopback address, and nothing else does",
          "[addresses]") {
  api::Job job;
  job.name = "llama";
  job.ns = "team";
  struct Row {
    const char* text;
    const char* rewritten;
  };
  const auto row = GENERATE(values<Row>({
      {"llama-master-0", "127.0.0.1"},
      {"llama-worker-12", "127.0.0.1"},
      {"tcp://llama-master-0:23456", "tcp://127.0.0.1:23456"},
      {"--addr=llama-master-0", "--addr=127.0.0.1"},
      {"llama-worker-0,llama-worker-1", "127.0.0.1,127.0.0.1"},
      {"llama-master-0.team", "127.0.0.1"},
      {"llama-master-0.team.svc", "127.0.0.1"},
      {"llama-master-0.team.svc.cluster.local:80", "127.0.0.1:80"},
      {"http://llama-master-0.team.svc/x", "http://127.0.0.1/x"},
      {"llama-master-0.", "127.0.0.1."},
      {"llama-master-0.other", "llama-master-0.other"},
      {"llama-master-0.pt", "llama-master-0.pt"},
      {"/logs/llama-master-0/x", "/logs/llama-master-0/x"},
      {"my-llama-master-0", "my-llama-master-0"},
      {"llama-master-0x", "llama-master-0x"},
      {"llama-master-", "llama-master-"},
      {"llama-chief-0", "llama-chief-0"},
      {"", ""},
  }));
  CAPTURE(row.text);
  CHECK(with_loopback(row.text, job) == row.rewritten);
}

TEST_CASE("expand: Kubernetes' rules for $(NAME)", "[addresses]") {
  const Variables variables{{"A", "1"}, {"B", "$(A)"}};
  struct Row {
    const char* text;
    const char* expanded;
  };
  const auto row = GENERATE(values<Row>({
      {"x$(A)y", "x1y"},
      {"$(B)", "$(A)"},
      {"$(C)", "$(C)"},
      {"$$(A)", "$(A)"},
      {"$$$(A)", "$1"},
      {"$", "$"},
      {"$A", "$A"},
      {"$(A", "$(A"},
      {"$(A)$(A)", "11"},
      {"a$$", "a$"},
      {"$()", "$()"},
      {"", ""},
  }));
  CAPTURE(row.text);
  CHECK(expand(row.text, variables) == row.expanded);
}

namespace {

api::Job job_with_port(int port) {
  api::Job job;
  job.spec.replicas[api::ReplicaType::Master].pod_template = Json{
      {"spec",
       {{"containers", {{{"name", "pytorch"}, {"ports", {{{"name", "pytorchjob-port"}, {"containerPort", port}}}}}}}}}};
  return job;
}

int port_of(const api::Job& job) {
  return job.spec.replicas.at(api::ReplicaType::Master)
      .pod_template.at("/spec/containers/0/ports/0/containerPort"_json_pointer);
}

}  // namespace

TEST_CASE("take_free_ports: a port that is free stays, one that is not is replaced and said", "[addresses]") {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(socket.get(), 1) == 0);
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const int taken_port = ntohs(address.sin_port);
  std::set<int> taken;
  api::Job first = job_with_port(taken_port);
  const auto changes = take_free_ports(first, taken);
  CHECK(changes.size() == 1);
  CHECK(port_of(first) != taken_port);
  api::Job second = job_with_port(port_of(first));
  CHECK(take_free_ports(second, taken).size() == 1);
  CHECK(port_of(second) != port_of(first));
}

TEST_CASE("take_free_ports: a meeting port under a name of its own is replaced, too, and the ranks are told of it",
          "[addresses]") {
  std::set<int> taken{api::kDefaultPort};
  api::Job job = job_with_port(api::kDefaultPort);
  api::ReplicaSpec& master = job.spec.replicas.at(api::ReplicaType::Master);
  master.pod_template["spec"]["containers"][0]["ports"][0]["name"] = "c10d";
  CHECK(take_free_ports(job, taken).size() == 1);
  CHECK(port_of(job) != api::kDefaultPort);
  CHECK(decide::port_of(master) == port_of(job));
}
