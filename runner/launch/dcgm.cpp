#include "launch/dcgm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "launch/child.h"

namespace trainyard::launch {
namespace {

constexpr int kSeconds = 10;

std::string program_in_path(const rendezvous::Environment& environment, const std::string& name) {
  const auto path = environment.find("PATH");
  if (path == environment.end()) return "";
  for (const std::string& folder : split(path->second, ':')) {
    const auto file = std::filesystem::path(folder) / name;
    std::error_code error;
    if (!folder.empty() && std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0)
      return file.string();
  }
  return "";
}

/// What is wrong with how it ended; empty: nothing.
std::string end_of(pid_t child) {
  const UniqueFd descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd entry{.fd = descriptor.get(), .events = POLLIN, .revents = 0};
  const bool has_ended = ::poll(&entry, 1, kSeconds * 1000) == 1;
  if (!has_ended) ::kill(-child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!has_ended) return fmt::format("has not ended in {} s", kSeconds);
  if (!WIFEXITED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

DcgmPause::DcgmPause(const rendezvous::Environment& environment)
    : environment_(environment), program_(program_in_path(environment, "dcgmi")) {
  is_paused_ = !program_.empty() && profile("--pause");
}

DcgmPause::~DcgmPause() {
  if (is_paused_) profile("--resume");
}

bool DcgmPause::profile(const std::string& flag) noexcept {
  std::string problem;
  try {
    const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ChildSettings child{.command = {program_, "profile", flag}, .out = nowhere.get(), .err = nowhere.get()};
    for (const auto& [name, value] : environment_) child.environment.push_back(name + "=" + value);
    problem = end_of(start_child(child));
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (!problem.empty()) fmt::print(stderr, "trainyard launch: `dcgmi profile {}`: {}\n", flag, problem);
  return problem.empty();
}

}  // namespace trainyard::launch
