#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace trainyard::launch {

struct ChildSettings {
  std::vector<std::string> command;      ///< program (searched in PATH) and arguments
  std::vector<std::string> environment;  ///< "NAME=value", the whole
  int out = -1;                          ///< becomes its stdout; -1: this process's own
  int err = -1;                          ///< becomes its stderr
  bool ignores_user_signal = false;      ///< begins with SIGUSR1 ignored
  int inherited = -1;                    ///< stays open in it under the same number; -1: nothing does
};

/// Starts a process in a process group of its own, with /dev/null to read, the signal mask empty, and its death sworn
/// to ours: the kernel kills it when the thread that called this ends, so nothing is left over however we end.
/// Throws InputError naming the program, where it cannot be run.
pid_t start_child(const ChildSettings& settings);

}  // namespace trainyard::launch
