#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "base/files.h"
#include "rendezvous/store_server.h"

namespace trainyard::comm {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// A rank as a process of its own (peer_main.cpp). The destructor kills it.
class Peer {
 public:
  explicit Peer(const std::vector<std::string>& arguments) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    output_ = UniqueFd(ends[0]);
    const UniqueFd input(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
    std::vector<char*> argv{const_cast<char*>(COMM_PEER)};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    REQUIRE(::posix_spawn(&pid_, COMM_PEER, &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void signal(int number) const { ::kill(pid_, number); }

  /// The next line of its output; empty at the end, or where none comes in half a minute.
  std::string line() {
    const auto deadline = Clock::now() + 30s;
    std::string text;
    for (char byte = 0; byte != '\n' && Clock::now() < deadline;) {
      pollfd wanted{.fd = output_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&wanted, 1, 1000) != 1) continue;
      if (::read(output_.get(), &byte, 1) != 1) break;
      if (byte != '\n') text += byte;
    }
    return text;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
};

struct Seen {
  std::vector<std::string> errors;  ///< of ranks 0 and 1
  std::chrono::milliseconds time;   ///< until both had one
};

/// Three ranks gather; rank 2 gets `signal` in the middle. What do the others say, and when?
Seen lose_rank_2(const std::string& channel, int signal, std::chrono::milliseconds timeout) {
  rendezvous::StoreServer server({.host = "127.0.0.1"});
  std::vector<std::unique_ptr<Peer>> peers;
  for (int rank = 0; rank < 3; ++rank)
    peers.push_back(std::make_unique<Peer>(std::vector<std::string>{
        std::to_string(rank), "3", std::to_string(server.port()), channel, std::to_string(timeout.count())}));
  for (const auto& peer : peers) REQUIRE(peer->line() == "ready");
  const auto lost = Clock::now();
  peers[2]->signal(signal);
  Seen seen{};
  for (int rank = 0; rank < 2; ++rank) seen.errors.push_back(peers[rank]->line());
  seen.time = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - lost);
  return seen;
}

TEST_CASE("gloo: a rank killed in the middle of a collective is named at once, long before the time-out", "[comm]") {
  const std::string channel = GENERATE("shared", "tcp");
  CAPTURE(channel);
  const auto seen = lose_rank_2(channel, SIGKILL, 60s);
  for (const auto& error : seen.errors) {
    CHECK_THAT(error, Catch::Contains("all_gather of layers.17 lost rank 2 (pod-2)"));
    CHECK_THAT(error, Catch::Contains("see that pod's log"));
  }
  CHECK(seen.time < 30s);  // a second in fact; the machine may be busy, and the time-out is twice that
}

TEST_CASE("gloo: a rank that is stopped is named after the time-out", "[comm]") {
  const std::string channel = GENERATE("shared", "tcp");
  CAPTURE(channel);
  const auto seen = lose_rank_2(channel, SIGSTOP, 5s);
  // Whoever gives up first says so to the other.
  const std::string both = seen.errors[0] + seen.errors[1];
  CHECK_THAT(both,
             Catch::Contains(
                 "all_gather of layers.17 waited 5 s for rank 2 (pod-2); see that pod's log, or raise comm.timeout"));
  for (const auto& error : seen.errors) CHECK_THAT(error, Catch::Contains("rank 2 (pod-2)"));
}

}  // namespace
}  // namespace trainyard::comm
