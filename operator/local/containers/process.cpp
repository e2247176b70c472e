#include "local/containers/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

std::array<UniqueFd, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe2");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));  // exec writes nothing
  pointers.push_back(nullptr);
  return pointers;
}

std::string reason() {
  return std::system_category().message(errno);
}

void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
}

/// The child runs it, which has one thread. Its parent had another, the endpoint's: glibc makes malloc safe here all
/// the same, and no other lock that is taken here is one that the endpoint's thread takes.
[[noreturn]] void become(const Program& program, pid_t parent, int output) {
  ::setpgid(0, 0);
  if (program.root.empty()) {
    // It runs in the machine's own.
  } else if (program.beside > 0) {
    join_root(program.beside);
  } else {
    enter_root(program.root, program.staging);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a user namespace forgets it, so not before
  if (::getppid() != parent) ::_exit(128 + SIGKILL);
  if (!program.folder.empty() && ::chdir(program.folder.c_str()) != 0)
    throw Refusal(fmt::format("workingDir {}: {}", program.folder, reason()));
  const int null = ::open("/dev/null", O_RDWR), heard = program.is_silent ? null : output;
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(heard, 1) < 0 || ::dup2(heard, 2) < 0)
    throw Refusal("its standard streams: " + reason());
  const std::vector<char*> command = pointers_to(program.command), environment = pointers_to(program.environment);
  ::environ = const_cast<char**>(environment.data());  // whose PATH is searched
  reset_signals();
  ::execvp(command.front(), command.data());
  throw Refusal(fmt::format("cannot run '{}': {}; images are not used here, commands run from PATH",
                            program.command.front(), reason()));
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 1024> block{};
  for (ssize_t got = 0; (got = ::read(fd, block.data(), block.size())) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) text.append(block.data(), static_cast<size_t>(got));
  return text;
}

pid_t forked() {
  const pid_t pid = ::fork();
  if (pid < 0) throw Refusal("no further process can be started: " + reason());
  return pid;
}

}  // namespace

Started start(const Program& program) {
  auto [reading, writing] = make_pipe();
  auto [problem, report] = make_pipe();
  const pid_t parent = ::getpid(), pid = forked();
  if (pid == 0) {
    try {
      become(program, parent, writing.get());
    } catch (const std::exception& error) {
      const std::string text = error.what();
      if (::write(report.get(), text.data(), text.size()) < 0) ::_exit(126);
    }
    ::_exit(127);
  }
  ::setpgid(pid, pid);  // whoever comes first
  writing.reset();
  report.reset();
  if (const std::string text = read_all(problem.get()); !text.empty()) {  // exec closes it
    ::waitpid(pid, nullptr, 0);
    throw Refusal(text);
  }
  ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  return {pid, std::move(reading)};
}

pid_t start(const std::function<int()>& question) {
  const pid_t parent = ::getpid(), pid = forked();
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(128 + SIGKILL);
    reset_signals();
    ::_exit(question());
  }
  ::setpgid(pid, pid);  // whoever comes first
  return pid;
}

}  // namespace trainyard::local
