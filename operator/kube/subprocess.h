#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "kube/alive.h"
#include "kube/event_loop.h"

namespace trainyard::kube {

/// A program run beside the loop, without input, with bounded time and output. Its process group ends with this object.
class Subprocess {
 public:
  struct Command {
    std::vector<std::string> arguments;    ///< the program first, looked for in PATH
    std::vector<std::string> environment;  ///< "NAME=value", on top of our own
    std::chrono::milliseconds timeout{60'000};
    size_t output_limit = 1 << 20;
  };
  struct Ended {
    int exit_code = 0;      ///< 128 + n for signal n
    std::string output;     ///< its stdout
    std::string problem;    ///< "" or why it was ended: it took too long, it printed too much, it cannot be started
    std::string complaint;  ///< the end of its stderr
  };

  /// `on_end` is called once, never inside of the constructor.
  Subprocess(EventLoop& loop, Command command, std::function<void(Ended)> on_end);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

 private:
  struct Pipe {
    int fd = -1;
    std::string content;
  };
  [[nodiscard]] int spawn();
  void watch_pipe(Pipe& pipe);
  void read(Pipe& pipe);
  void close_pipe(Pipe& pipe);
  void give_up(std::string problem);
  void finish();

  EventLoop& loop_;
  Command command_;
  std::function<void(Ended)> on_end_;
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  Pipe output_, complaint_;
  Ended ended_;
  bool has_exited_ = false;
  EventLoop::TimerId timer_ = EventLoop::TimerId::None;
  Alive alive_;
};

}  // namespace trainyard::kube
