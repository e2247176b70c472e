#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "local/volumes/volumes.h"

// Mounted paths without root: a container that mounts something runs in a mount namespace of its own, in which `/` is
// an empty file system in memory with the machine's folders and the volumes bound into it. Nothing of it is to be seen
// outside, and nothing is left behind. bubblewrap does the same; it is not used because it stays between us and the
// container as a process that passes no signal on, and SIGTERM is how a trainer learns to save.
namespace trainyard::local {

struct RootStep {
  enum class Kind { Folder, Link, Bind };
  Kind kind;
  std::string path;    ///< in the new root
  std::string source;  ///< Bind: on this machine; Link: what it says
  bool read_only = false;

  friend bool operator==(const RootStep&, const RootStep&) = default;
};

/// How to make a root in which each mount is in its place: in this order. A folder of the machine that lacks a mount
/// point becomes one in memory that has it, and the machine's own content besides. Empty where each is in its place
/// anyway. Throws Refusal where a mount point cannot be.
[[nodiscard]] std::vector<RootStep> plan_root(const std::vector<Mount>& mounts,
                                              const std::filesystem::path& host = "/");

/// What of that is known before anything is there. Throws Refusal where two volumes are mounted at one place.
void check_places(const std::vector<Mount>& mounts, const std::filesystem::path& host = "/");

/// A child calls it between fork and exec of a process with one thread. `staging`: an empty folder, of which nothing
/// stays. Throws Refusal, saying what the kernel does not allow and what would.
void enter_root(const std::vector<RootStep>& steps, const std::string& staging);

/// The same for the root that process `pid`, which lives, has entered: from then on both see what either writes.
void join_root(pid_t pid);

}  // namespace trainyard::local
