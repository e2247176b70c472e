#include "kube/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

extern char** environ;

namespace trainyard::kube {
namespace {

constexpr size_t kComplaintLimit = 4096;

/// A pipe whose reading end does not block; both ends stay ours alone.
std::pair<int, int> new_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe2");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::string>& additions) {
  std::vector<std::string> result = additions;
  const auto is_replaced = [&](const std::string& entry) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    for (const std::string& addition : additions)
      if (addition.starts_with(name)) return true;
    return false;
  };
  for (char** entry = environ; entry && *entry; ++entry)
    if (!is_replaced(*entry)) result.emplace_back(*entry);
  return result;
}

}  // namespace

Subprocess::Subprocess(EventLoop& loop, Command command, std::function<void(Ended)> on_end)
    : loop_(loop), command_(std::move(command)), on_end_(std::move(on_end)) {
  if (const int error = spawn(); error != 0) {
    ended_.problem = std::string("cannot be started: ") + std::strerror(error);
    has_exited_ = true;
    loop_.post(alive_.guard([this] { finish(); }));
    return;
  }
  timer_ = loop_.after(command_.timeout, alive_.guard([this] {
    give_up("has not ended within " + std::to_string(command_.timeout.count() / 1000) + " s");
  }));
  watch_pipe(output_);
  watch_pipe(complaint_);
  loop_.watch(pid_fd_, EventLoop::Readable, alive_.guard([this](unsigned) {
    siginfo_t info{};
    ::kill(-pid_, SIGKILL);  // it has ended, and what it left behind would hold the pipes open
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return;
    ended_.exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    has_exited_ = true;
    finish();
  }));
}

Subprocess::~Subprocess() {
  loop_.cancel(timer_);
  close_pipe(output_);
  close_pipe(complaint_);
  if (pid_ > 0 && !has_exited_) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);  // ends at once: it was killed
  }
  if (pid_fd_ >= 0) {
    loop_.unwatch(pid_fd_);
    ::close(pid_fd_);
  }
}

int Subprocess::spawn() {
  const auto [output, output_end] = new_pipe();
  const auto [complaint, complaint_end] = new_pipe();
  output_.fd = output;
  complaint_.fd = complaint;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output_end, 1);
  posix_spawn_file_actions_adddup2(&actions, complaint_end, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  auto environment = environment_with(command_.environment);
  const int error = ::posix_spawnp(&pid_, command_.arguments.front().c_str(), &actions, &attributes,
                                   pointers_to(command_.arguments).data(), pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(output_end);
  ::close(complaint_end);
  if (error != 0) {
    pid_ = -1;
    return error;
  }
  pid_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pid_fd_ >= 0) return 0;
  const int pidfd_error = errno;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  return pidfd_error;
}

void Subprocess::watch_pipe(Pipe& pipe) {
  loop_.watch(pipe.fd, EventLoop::Readable, alive_.guard([this, &pipe](unsigned) { read(pipe); }));
}

void Subprocess::read(Pipe& pipe) {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t count = ::read(pipe.fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return close_pipe(pipe);
    pipe.content.append(buffer.data(), static_cast<size_t>(count));
    if (&pipe == &complaint_ && pipe.content.size() > kComplaintLimit)
      pipe.content.erase(0, pipe.content.size() - kComplaintLimit);
    if (pipe.content.size() > command_.output_limit)
      return give_up("printed more than " + std::to_string(command_.output_limit) + " bytes");
  }
}

void Subprocess::close_pipe(Pipe& pipe) {
  if (pipe.fd < 0) return;
  loop_.unwatch(pipe.fd);
  ::close(std::exchange(pipe.fd, -1));
}

void Subprocess::give_up(std::string problem) {
  if (!ended_.problem.empty()) return;
  ended_.problem = std::move(problem);
  close_pipe(output_);
  close_pipe(complaint_);
  if (!has_exited_) ::kill(-pid_, SIGKILL);  // its end comes through the descriptor of the process
}

void Subprocess::finish() {
  loop_.cancel(timer_);
  for (Pipe* const pipe : {&output_, &complaint_})
    if (pipe->fd >= 0) read(*pipe);
  if (pid_fd_ >= 0) loop_.unwatch(pid_fd_);
  ended_.output = std::move(output_.content);
  ended_.complaint = std::move(complaint_.content);
  const auto on_end = std::move(on_end_);
  on_end(std::move(ended_));  // may end this object
}

}  // namespace trainyard::kube
