#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "local/containers/root.h"

namespace trainyard::local {

/// One process that stands for a container.
struct Program {
  std::vector<std::string> command;      ///< run from the PATH of its environment
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string folder;                    ///< "": where this program was started
  std::vector<RootStep> root;            ///< empty: the machine's own
  std::string staging;                   ///< an empty folder, for a root
  pid_t beside = 0;                      ///< not 0: the process that has made the root already, in which this one runs
  bool is_silent = false;                ///< nobody reads what it writes
};

struct Started {
  pid_t pid = 0;    ///< also its process group
  UniqueFd output;  ///< stdout and stderr in the order they were written; does not block; of a silent one nothing
};

/// Starts it in a process group of its own, with an empty stdin; the kernel kills it when this process dies.
/// Throws Refusal, without the process, where its root, folder or program is not to be had.
[[nodiscard]] Started start(const Program& program);
/// Answers a question in a process of its own, which ends with the answer as its exit code. Its id, which is also its
/// process group. The question must take no lock that another thread of this process may hold.
[[nodiscard]] pid_t start(const std::function<int()>& question);

}  // namespace trainyard::local
