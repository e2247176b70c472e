#include "launch/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/shortage.h"

namespace trainyard::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts)
    all.push_back(const_cast<char*>(text.c_str()));  // exec takes char* and writes nothing
  all.push_back(nullptr);
  return all;
}

/// The child runs it: only calls that are safe after fork().
[[noreturn]] void become(const ChildSettings& settings, char* const* arguments, char* const* environment, pid_t parent,
                         int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(128 + SIGKILL);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGXFSZ, SIG_DFL);  // ignored here, and would be there, whatever the program
  if (settings.ignores_user_signal) ::signal(SIGUSR1, SIG_IGN);
  const int null = ::open("/dev/null", O_RDONLY);
  bool is_ready = null >= 0 && ::dup2(null, STDIN_FILENO) >= 0;
  if (settings.out >= 0) is_ready = is_ready && ::dup2(settings.out, STDOUT_FILENO) >= 0;
  if (settings.err >= 0) is_ready = is_ready && ::dup2(settings.err, STDERR_FILENO) >= 0;
  if (settings.inherited >= 0) is_ready = is_ready && ::fcntl(settings.inherited, F_SETFD, 0) >= 0;
  if (is_ready) ::execvpe(arguments[0], arguments, environment);
  const int error = errno;
  if (::write(report, &error, sizeof error) < 0) ::_exit(126);
  ::_exit(127);
}

}  // namespace

pid_t start_child(const ChildSettings& settings) {
  const std::vector<char*> arguments = pointers(settings.command), environment = pointers(settings.environment);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe2");
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid == 0) become(settings, arguments.data(), environment.data(), parent, writing.get());
  writing.reset();
  int error = 0;
  // The pipe closes by itself when exec succeeds.
  if (::read(reading.get(), &error, sizeof error) <= 0) return pid;
  ::waitpid(pid, nullptr, 0);
  throw InputError(fmt::format("cannot run '{}': {}", settings.command.front(),
                               text_with_remedy({error, std::system_category()})));
}

}  // namespace trainyard::launch
