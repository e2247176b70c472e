#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "support/support.h"

// The real program as a person or a pod runs it: a process, its output, its exit code.
namespace trainyard::test {

using Words = std::vector<std::string>;

struct Command {
  Words words;  ///< program and arguments
  std::map<std::string, std::string>
      environment{};                   ///< beside the test's own, which is freed of all that places a rank
  std::chrono::seconds patience{240};  ///< then it is killed and `timed_out`: a loaded machine is no failure, a hang is
};

struct Ended {
  int code = 0;  ///< 128 + n where signal n killed it
  std::string out, err;
  bool timed_out = false;

  [[nodiscard]] std::string all() const;  ///< for CAPTURE
};

/// A process under way, in a group of its own. The destructor kills what is left of the group.
class Process {
 public:
  explicit Process(const Command& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;
  /// Waits until `text` stands in its output; false where it ended or its patience did without it.
  [[nodiscard]] bool says(const std::string& text) const;
  void signal(int number) const;
  /// The living processes that it started, oldest first: of a launcher its ranks.
  [[nodiscard]] std::vector<pid_t> children() const;
  Ended wait();

 private:
  [[nodiscard]] bool has_ended(std::chrono::milliseconds patience) const;

  TemporaryFolder folder_;
  std::chrono::steady_clock::time_point deadline_;
  pid_t pid_ = 0;
  UniqueFd pidfd_;
  bool reaped_ = false;
};

/// Runs it to its end.
Ended run(const Command& command);

/// The program under test with these arguments.
Words trainyard(Words arguments);
/// `trainyard launch --nproc-per-node ranks arguments…`; without a launcher for one rank.
Words on_ranks(int ranks, Words arguments);
Words operator+(Words a, const Words& b);

/// What place two processes have in a world that nobody launched for them.
std::map<std::string, std::string> rank_environment(int rank, int world, int port);
/// Holds a port of the loopback while it lives, and answers nobody.
class Listener {
 public:
  Listener();
  [[nodiscard]] int port() const { return port_; }

 private:
  UniqueFd socket_;
  int port_ = 0;
};

/// The lines of a text.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace trainyard::test
