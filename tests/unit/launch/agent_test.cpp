#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <csignal>
#include <functional>
#include <future>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "launch/agent.h"
#include "launch/world.h"
#include "rendezvous/sockets.h"
#include "support/support.h"

namespace trainyard::launch {
namespace {

using namespace std::chrono_literals;

/// The launcher in a process of its own, as `trainyard launch` is, with its output in a pipe.
class Launcher {
 public:
  Launcher(const std::string& script, int ranks, std::chrono::milliseconds grace = 30s,
           rendezvous::Environment environment = rendezvous::process_environment()) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    output_ = UniqueFd(ends[0]);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::_exit(launch(script, ranks, grace, environment));
    }
    ::close(ends[1]);
  }
  ~Launcher() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& text() const { return text_; }

  /// Reads until the output contains `part`. False where it ended before.
  bool read_until(const std::string& part) {
    while (text_.find(part) == std::string::npos) {
      if (!read_more()) return false;
    }
    return true;
  }
  /// Reads to the end. The exit code; 128 + signal.
  int finish() {
    while (read_more()) {
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static int launch(const std::string& script, int ranks, std::chrono::milliseconds grace,
                    const rendezvous::Environment& environment) {
    try {
      const auto restarts = environment.find("PET_MAX_RESTARTS");
      LaunchOptions options;
      options.node.node_rank = 0;
      options.node.processes = fmt::format("{}", ranks);
      options.grace = grace;
      if (restarts != environment.end()) options.max_restarts = std::stoi(restarts->second);
      options.command = {"/bin/sh", "-c", script};
      options.is_trainyard = false;
      return launch_ranks(options, environment);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      std::fflush(stderr);
      return static_cast<int>(exit_code_of(error));
    }
  }
  bool read_more() {
    pollfd poll{.fd = output_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, 60'000) <= 0) return false;
    char bytes[4096];
    const ssize_t count = ::read(output_.get(), bytes, sizeof bytes);
    if (count <= 0) return false;
    text_.append(bytes, static_cast<size_t>(count));
    return true;
  }

  UniqueFd output_;
  pid_t pid_ = -1;
  std::string text_;
};

bool is_alive(const std::string& pid) {
  return ::kill(static_cast<pid_t>(parse_int(pid).value()), 0) == 0;
}

/// The word after `mark` in `text`.
std::string word_after(const std::string& text, const std::string& mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  return text.substr(at + mark.size(), text.find_first_of(" \n", at + mark.size()) - at - mark.size());
}

}  // namespace

TEST_CASE("launch_ranks: every rank gets its place, and its lines their prefix", "[launch]") {
  Launcher launcher(
      "echo out $RANK of $WORLD_SIZE, local $LOCAL_RANK of $LOCAL_WORLD_SIZE; echo err $RANK >&2; printf unfinished",
      2);
  CHECK(launcher.finish() == 0);
  for (const char* const line :
       {"[rank 0] out 0 of 2, local 0 of 2\n", "[rank 1] out 1 of 2, local 1 of 2\n", "[rank 0] err 0\n",
        "[rank 1] err 1\n", "[rank 0] unfinished\n", "[rank 1] unfinished\n"}) {
    CHECK_THAT(launcher.text(), Catch::Contains(line));
  }
}

TEST_CASE("launch_ranks: ranks that fail are started again, all of them, with the number of the restart", "[launch]") {
  rendezvous::Environment environment = rendezvous::process_environment();
  environment["PET_MAX_RESTARTS"] = "2";
  const std::string script =
      "echo start $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS at $RANK; "
      "[ $RANK = 0 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 7; "
      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 60; exit 0";
  Launcher launcher(script, 2, 30s, environment);
  CHECK(launcher.finish() == 0);
  CHECK_THAT(launcher.text(), Catch::Contains("rank 0 failed first, exit code 7; restart 1 of 2\n"));
  for (const char* const line :
       {"[rank 0] start 0 of 2 at 0", "[rank 0] start 1 of 2 at 0", "[rank 1] start 1 of 2 at 1"})
    CHECK_THAT(launcher.text(), Catch::Contains(line));
  CHECK_THAT(launcher.text(), !Catch::Contains("start 2 of 2"));
}

TEST_CASE("launch_ranks: the failure after the last restart is the launcher's", "[launch]") {
  rendezvous::Environment environment = rendezvous::process_environment();
  environment["PET_MAX_RESTARTS"] = "3";
  Launcher launcher("exit $((10 + TORCHELASTIC_RESTART_COUNT))", 1, 30s, environment);
  CHECK(launcher.finish() == 13);
  CHECK_THAT(launcher.text(),
             Catch::Contains("exit code 12; restart 3 of 3") && Catch::Contains("failed first, exit code 13\n"));
}

TEST_CASE("launch_ranks: the code of the rank that failed first, its reason, and an end for the others", "[launch]") {
  const test::TemporaryFolder folder;
  const std::string log = folder / "termination-log";
  write_file_atomically(log, "");
  rendezvous::Environment environment = rendezvous::process_environment();
  environment["TRAINYARD_TERMINATION_LOG"] = log;
  REQUIRE(::setenv("TRAINYARD_TERMINATION_LOG", log.c_str(), 1) == 0);
  Launcher launcher("if [ $RANK = 1 ]; then echo 'no such corpus' >&2; exit 2; fi; exec sleep 600", 3, 30s,
                    environment);
  REQUIRE(::unsetenv("TRAINYARD_TERMINATION_LOG") == 0);
  CHECK(launcher.finish() == 2);
  CHECK_THAT(launcher.text(), Catch::Contains("trainyard launch: rank 1 failed first, exit code 2: no such corpus\n"));
  CHECK(read_file(log) == "rank 1 failed first, exit code 2: no such corpus\n");
}

TEST_CASE("launch_ranks: what a rank gives as its last error is the reason, before its last line", "[launch]") {
  Launcher launcher("echo 'cannot read x.yaml' > $TRAINYARD_TERMINATION_LOG; echo noise >&2; exit 3", 1);
  CHECK(launcher.finish() == 3);
  CHECK_THAT(launcher.text(), Catch::Contains("rank 0 failed first, exit code 3: cannot read x.yaml\n"));
}

TEST_CASE("launch_ranks: a rank killed by a signal counts as 128 + n", "[launch]") {
  Launcher launcher("if [ $RANK = 0 ]; then kill -KILL $$; fi; exec sleep 600", 2);
  CHECK(launcher.finish() == 137);
  CHECK_THAT(launcher.text(), Catch::Contains("rank 0 failed first, killed by signal 9"));
}

TEST_CASE("launch_ranks: ranks that ignore SIGTERM are over 5 s after one fails", "[launch]") {
  // A shorter grace bounds it too, which keeps this test short; gang_test has the 4 s.
  const test::TemporaryFolder folder;
  Launcher launcher(
      fmt::format("ready={}; if [ $RANK = 0 ]; then while [ ! -e $ready ]; do sleep 0.01; done; exit 7; fi; "
                  "trap '' TERM; echo > $ready; while :; do sleep 600; done",
                  (folder / "ready").string()),
      2, 200ms);
  CHECK(launcher.finish() == 7);
  CHECK_THAT(launcher.text(), Catch::Contains("rank 1 did not end in time and is killed"));
}

TEST_CASE("launch_ranks: SIGTERM and SIGINT reach the ranks, which may save, and it ends with 143", "[launch]") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  Launcher launcher("trap 'echo saved $RANK; exit 143' TERM; echo ready $RANK; while :; do sleep 0.01; done", 2);
  REQUIRE(launcher.read_until("ready 0"));
  REQUIRE(launcher.read_until("ready 1"));
  ::kill(launcher.pid(), signal);
  CHECK(launcher.finish() == 143);
  CHECK_THAT(launcher.text(), Catch::Contains("[rank 0] saved 0\n") && Catch::Contains("[rank 1] saved 1\n"));
}

TEST_CASE("launch_ranks: who does not end within the grace is killed", "[launch]") {
  Launcher launcher("trap '' TERM; echo ready; while :; do sleep 600; done", 1, 100ms);
  REQUIRE(launcher.read_until("ready"));
  ::kill(launcher.pid(), SIGTERM);
  CHECK(launcher.finish() == 137);
  CHECK_THAT(launcher.text(), Catch::Contains("rank 0 did not end in time and is killed"));
}

TEST_CASE("launch_ranks: what a rank started and left behind does not outlive it", "[launch]") {
  Launcher launcher("sleep 600 >/dev/null 2>&1 & echo child $!; exit 0", 1);
  CHECK(launcher.finish() == 0);
  CHECK_FALSE(is_alive(word_after(launcher.text(), "child ")));
}

TEST_CASE("launch_ranks: no rank outlives a launcher that is killed", "[launch]") {
  Launcher launcher("echo pid $$; exec sleep 600", 1);
  REQUIRE(launcher.read_until("\n"));
  const std::string rank = word_after(launcher.text(), "pid ");
  // The orphan comes to this process instead of init, which may reap late.
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  ::kill(launcher.pid(), SIGKILL);
  CHECK(launcher.finish() == 137);
  const auto pid = static_cast<pid_t>(parse_int(rank).value());
  int status = 0;
  CHECK(::waitpid(pid, &status, 0) == pid);
  CHECK(WIFSIGNALED(status));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("launch_ranks: children that it adopts are reaped while the ranks run", "[launch]") {
  // A grandchild that left its group ends at once; the rank waits until nothing of it is left, not even a zombie.
  Launcher launcher(
      "pid=$( (setsid sh -c 'exit 0' >/dev/null & echo $!) ); while [ -e /proc/$pid ]; do sleep 0.01; done; echo "
      "reaped",
      1);
  CHECK(launcher.finish() == 0);
  CHECK_THAT(launcher.text(), Catch::Contains("[rank 0] reaped\n"));
}

TEST_CASE("launch_ranks: a program that cannot be run is an input error", "[launch]") {
  LaunchOptions options;
  options.node.node_rank = 0;
  options.node.processes = "2";
  options.command = {"/no/such/program"};
  options.is_trainyard = false;
  CHECK_THROWS_AS(launch_ranks(options, {}), InputError);
  CHECK_THROWS_WITH(launch_ranks(options, {}), "cannot run '/no/such/program': No such file or directory");
}

TEST_CASE("launch_ranks: DCGM's profiling is paused while ranks run, and resumed however they end", "[launch]") {
  const test::TemporaryFolder folder;
  const std::string calls = (folder.path() / "calls").string();
  const auto write_dcgmi = [&](const std::string& body) {
    write_file_atomically(folder / "dcgmi", "#!/bin/sh\n" + body);
    std::filesystem::permissions(folder / "dcgmi", std::filesystem::perms::owner_all);
  };
  rendezvous::Environment environment = rendezvous::process_environment();
  environment["PATH"] = folder.path().string() + ":" + environment["PATH"];
  const auto launched = [&](const std::string& script) {
    return std::make_unique<Launcher>(script, 2, 30s, environment);
  };
  write_dcgmi("echo \"$@\" >> " + calls + "; echo said; echo said >&2\n");
  const auto failing = launched("cat " + calls + "; exit 4");
  CHECK(failing->finish() == 4);
  // Whichever rank fails first ends the other, maybe before that has said anything.
  const std::string text = failing->text();
  CHECK_THAT(text, Catch::Contains("[rank 0] profile --pause\n") || Catch::Contains("[rank 1] profile --pause\n"));
  CHECK_THAT(text, !Catch::Contains("said"));
  CHECK(read_file(calls) == "profile --pause\nprofile --resume\n");

  const auto stopped = launched("trap 'exit 143' TERM; echo ready; while :; do sleep 0.05; done");
  REQUIRE(stopped->read_until("[rank 1] ready"));
  ::kill(stopped->pid(), SIGTERM);
  CHECK(stopped->finish() == 143);
  CHECK(read_file(calls) == "profile --pause\nprofile --resume\nprofile --pause\nprofile --resume\n");

  write_dcgmi("echo \"$@\" >> " + calls + ".failing; exit 3\n");
  const auto without = launched("true");
  CHECK(without->finish() == 0);
  CHECK_THAT(without->text(), Catch::Contains("`dcgmi profile --pause`: ended with exit code 3\n"));
  CHECK(read_file(calls + ".failing") == "profile --pause\n");
}

TEST_CASE("launch_ranks: a log folder gets each rank's output without prefixes", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchOptions options;
  options.node.node_rank = 0;
  options.node.processes = "2";
  options.command = {"/bin/sh", "-c", "echo out $RANK; echo err $RANK >&2"};
  options.is_trainyard = false;
  options.log_dir = folder / "made/logs";
  CHECK(launch_ranks(options, {}) == 0);
  CHECK(read_file(folder / "made/logs/rank-0.out") == "out 0\n");
  CHECK(read_file(folder / "made/logs/rank-1.err") == "err 1\n");
}

namespace {

LaunchOptions elastic_node() {
  LaunchOptions options;
  options.node.min_nodes = 2;
  options.node.max_nodes = 4;
  options.node.processes = "2";
  options.master = rendezvous::Endpoint{"127.0.0.1", test::free_port()};
  options.rendezvous_timeout = 60s;
  return options;
}

/// What each node sees of the world that they form, by the order in `numbers`. Processes, as nodes are: each watches
/// signals of its own.
std::vector<std::string> worlds_of(LaunchOptions options, const std::vector<std::optional<int>>& numbers) {
  const test::TemporaryFolder folder;
  std::vector<pid_t> nodes;
  for (size_t node = 0; node < numbers.size(); ++node) {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      options.node.node_rank = numbers[node];
      std::string seen;
      try {
        const LocalWorld world = local_world(options, {});
        seen = fmt::format("{} of {}, first rank {}, meets at {}", world.ranks, world.world, world.first_rank,
                           world.master.host);
      } catch (const std::exception& error) {
        seen = error.what();
      }
      write_file_atomically(folder / fmt::format("node-{}", node), seen);
      ::_exit(0);
    }
    nodes.push_back(pid);
  }
  for (const pid_t pid : nodes) ::waitpid(pid, nullptr, 0);
  std::vector<std::string> seen;
  for (size_t node = 0; node < numbers.size(); ++node) seen.push_back(read_file(folder / fmt::format("node-{}", node)));
  return seen;
}

}  // namespace

TEST_CASE("local_world: an elastic world is formed at once when all that are wanted are there, by their numbers",
          "[launch]") {
  LaunchOptions options = elastic_node();
  std::vector<std::optional<int>> numbers{2, 0, 1};
  SECTION("as many as it may have") {
    options.node.max_nodes = 3;
  }
  SECTION("as many as there are") {
    options.node.nodes_now = 3;
  }
  SECTION("more of them than its numbers say") {
    options.node.nodes_now = 1;  // no fewer than the minimum
    numbers = {1, 0};
  }
  const auto seen = worlds_of(options, numbers);
  for (size_t node = 0; node < numbers.size(); ++node)
    CHECK(seen[node] ==
          fmt::format("2 of {}, first rank {}, meets at 127.0.0.1", 2 * numbers.size(), 2 * numbers[node].value()));
}

TEST_CASE("local_world: an elastic world goes on with those that came, once its time or the last call is over",
          "[launch]") {
  LaunchOptions options = elastic_node();
  SECTION("its time") {
    options.rendezvous_timeout = 3s;
  }
  SECTION("the last call") {
    options.last_call = 100ms;
  }
  const auto seen = worlds_of(options, {1, 0});
  CHECK(seen[0] == "2 of 4, first rank 2, meets at 127.0.0.1");
  CHECK(seen[1] == "2 of 4, first rank 0, meets at 127.0.0.1");
}

TEST_CASE("local_world: too few nodes of an elastic world are counted after its time-out", "[launch]") {
  LaunchOptions options;
  options.node.min_nodes = 2;
  options.node.max_nodes = 3;
  options.node.node_rank = 0;
  options.node.processes = "1";
  options.master = rendezvous::Endpoint{"127.0.0.1", test::free_port()};
  options.rendezvous_timeout = 100ms;
  CHECK_THROWS_AS(local_world(options, {}), PeerError);
  CHECK_THROWS_WITH(local_world(options, {}), Catch::StartsWith("1 of at least 2 nodes came within 100 ms"));
}

}  // namespace trainyard::launch
