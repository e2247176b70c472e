#include "process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace trainyard::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

bool places_a_rank(const std::string& name) {
  static const std::vector<std::string> prefixes{
      "RANK=", "LOCAL_RANK=", "WORLD_SIZE=", "LOCAL_WORLD_SIZE=", "GROUP_RANK=", "MASTER_",
      "PET_",  "OMPI_",       "PMIX_",       "TRAINYARD_",        "KUBERNETES_"};
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry)
    if (!places_a_rank(*entry)) environment.emplace_back(*entry);
  for (const auto& [name, value] : command.environment) environment.push_back(name + "=" + value);
  return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::string Ended::all() const {
  return fmt::format("exit code {}{}\n── stdout\n{}\n── stderr\n{}", code, timed_out ? ", TIMED OUT" : "", out, err);
}

Process::Process(const Command& command) : deadline_(Clock::now() + command.patience) {
  std::vector<std::string> words = command.words, environment = environment_of(command);
  const auto argv = pointers_to(words), envp = pointers_to(environment);
  const UniqueFd out(::open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600));
  const UniqueFd err(::open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600));
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid_ == 0) {  // only what is safe between fork and exec
    ::setpgid(0, 0);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    ::execvpe(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);                                                    // whoever comes first
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));  // the header of glibc 2.36 is for C only
}

Process::~Process() {
  if (reaped_) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Process::out() const {
  return text_of(folder_ / "out");
}
std::string Process::err() const {
  return text_of(folder_ / "err");
}

bool Process::has_ended(milliseconds patience) const {
  pollfd entry{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(std::max<int64_t>(0, patience.count()))) > 0;
}

bool Process::says(const std::string& text) const {
  const auto said = [&] { return out().find(text) != std::string::npos || err().find(text) != std::string::npos; };
  while (Clock::now() < deadline_) {
    if (said()) return true;
    if (has_ended(milliseconds(10))) return said();
  }
  return false;
}

void Process::signal(int number) const {
  ::kill(pid_, number);
}

std::vector<pid_t> Process::children() const {
  std::istringstream text(text_of(fmt::format("/proc/{}/task/{}/children", pid_, pid_)));
  std::vector<pid_t> found;
  for (pid_t child = 0; text >> child;) found.push_back(child);
  return found;
}

Ended Process::wait() {
  Ended ended;
  ended.timed_out = !has_ended(std::chrono::ceil<milliseconds>(deadline_ - Clock::now()));
  if (ended.timed_out) ::kill(-pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  reaped_ = true;
  ended.code = code_of(status);
  ended.out = out();
  ended.err = err();
  return ended;
}

Ended run(const Command& command) {
  return Process(command).wait();
}

Words trainyard(Words arguments) {
  return Words{TRAINYARD_PROGRAM} + arguments;
}

Words on_ranks(int ranks, Words arguments) {
  if (ranks == 1) return trainyard(std::move(arguments));
  return trainyard(Words{"launch", "--nproc-per-node", std::to_string(ranks)} + arguments);
}

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::map<std::string, std::string> rank_environment(int rank, int world, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"LOCAL_WORLD_SIZE", std::to_string(world)},
          {"MASTER_PORT", std::to_string(port)}};
}

Listener::Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_.get(), 8) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::system_error(errno, std::system_category(), "a listening socket");
  port_ = ntohs(address.sin_port);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace trainyard::test
