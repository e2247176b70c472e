#pragma once

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/settings.h"
#include "rendezvous/store_client.h"
#include "rendezvous/store_server.h"
#include "support/support.h"

// Two ranks on one GPU. To NCCL each is on a host of its own, by NCCL_HOSTID, so it does not refuse that they share
// one, and goes over sockets of the loopback; they are processes, as it asks for.
namespace trainyard::test {

/// Runs the hidden case `name` of this program in two processes, and returns their exit codes, 0 where it passed. The
/// case is on_one_gpu()'s.
inline std::vector<int> run_on_one_gpu(const std::string& name) {
  rendezvous::StoreServer server({.host = "127.0.0.1"});
  const TemporaryFolder mail;  // of NCCL's stand-in (tests/support/host_cuda/nccl.h)
  std::vector<pid_t> ranks;
  for (const std::string rank : {"0", "1"}) {
    std::vector<std::string> variables{"ONE_GPU_RANK=" + rank,
                                       "ONE_GPU_STORE=" + std::to_string(server.port()),
                                       "HOST_NCCL_MAIL=" + mail.path().string(),
                                       "NCCL_HOSTID=host-" + rank,
                                       "NCCL_P2P_DISABLE=1",
                                       "NCCL_SHM_DISABLE=1",
                                       "NCCL_NET=Socket",
                                       "NCCL_SOCKET_IFNAME=lo"};
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    for (char** other = environ; *other; ++other) environment.push_back(*other);
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe", wanted = name, warn = "--warn", none = "NoTests";
    char* const words[] = {program.data(), wanted.data(), warn.data(), none.data(), nullptr};
    pid_t pid = -1;
    if (::posix_spawn(&pid, program.c_str(), nullptr, nullptr, words, environment.data()) != 0)
      throw std::runtime_error("no process to be had");
    ranks.push_back(pid);
  }
  std::vector<int> codes;
  for (const pid_t rank : ranks) {
    int status = -1;
    ::waitpid(rank, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return codes;
}

/// What `rank(comm, device)` returns, on the rank that this process is.
template <typename Rank>
auto on_one_gpu(comm::Settings settings, Rank&& rank) {
  using namespace std::chrono_literals;
  const auto variable = [](const char* name) {
    const char* const value = ::getenv(name);
    if (!value) throw std::runtime_error("this case is of two processes: see support/one_gpu.h");
    return std::stoi(value);
  };
  rendezvous::StoreClient store(
      {.master = {.host = "127.0.0.1", .port = static_cast<uint16_t>(variable("ONE_GPU_STORE"))},
       .credentials = {},
       .timeout = 30s});
  settings.device = {DeviceKind::Cuda, 0};
  settings.rank = variable("ONE_GPU_RANK"), settings.world = 2;
  settings.host = "host-" + std::to_string(settings.rank), settings.address = "127.0.0.1";
  settings.store = &store, settings.timeout = 60s;
  const auto comm = comm::connect(settings);
  auto result = rank(*comm, settings.device);
  comm->close(std::chrono::steady_clock::now() + 30s);
  return result;
}

}  // namespace trainyard::test
