#include "run/flight_recorder.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/signal_text.h"

namespace trainyard::train {
namespace {

constexpr std::array kFatal{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t kAlternateStack = 64 << 10;  // a stack that has run over leaves no room to handle that on it

/// All that a handler needs, put together before.
struct Target {
  std::string folder, file, temporary, stacks, host;
  int rank = 0, world = 1;
  std::atomic<const comm::FlightRecord*> record = nullptr;
};

// A handler can reach nothing but what is static.
std::atomic<const Target*> active = nullptr;
std::atomic<int> stacks_fd = -1;  // while threads are asked for their stacks
std::atomic<int> stacks_written = 0;

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    case SIGABRT:
      return "SIGABRT";
    default:
      return "SIGUSR1";
  }
}

/// mkdir -p, for a handler.
void make_folders(const std::string& path) {
  std::array<char, 4096> part{};
  for (size_t at = 0; at < path.size() && at + 1 < part.size(); ++at) {
    part[at] = path[at];
    const bool is_end = at + 1 == path.size() || path[at + 1] == '/';
    if (is_end) static_cast<void>(::mkdir(part.data(), 0777));
  }
}

bool write_record(const Target& target, std::string_view reason) {
  make_folders(target.folder);
  const int fd = ::open(target.temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  {
    SignalText out(fd);
    out.text("{\"rank\":").number(target.rank).text(",\"world\":").number(target.world);
    out.text(",\"host\":").quoted(target.host).text(",\"process\":").number(::getpid());
    out.text(",\"time\":").seconds(nanoseconds_since_1970()).text(",\n\"reason\":").quoted(reason);
    out.text(",\n\"collectives\":");
    out.flush();
    if (const comm::FlightRecord* const record = target.record)
      record->write(fd);
    else
      out.text("[]");
    out.text("}\n");
  }
  const bool is_whole = ::close(fd) == 0;
  return is_whole && ::rename(target.temporary.c_str(), target.file.c_str()) == 0;
}

void write_stack(int fd) {
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  SignalText(fd).text("thread ").number(::syscall(SYS_gettid)).text(" ").text(name.data()).text("\n");
  std::array<void*, 64> frames{};
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), static_cast<int>(frames.size())), fd);
  SignalText(fd).text("\n");
}

/// Asks one thread for its stack and waits for it, for a fifth of a second: it may have blocked the signal.
void ask_thread(pid_t thread) {
  const int before = stacks_written;
  if (::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR1) != 0) return;
  for (int wait = 0; wait < 200 && stacks_written == before; ++wait) {
    const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&millisecond, nullptr);
  }
}

/// The directory is read by the system's own call: opendir() takes memory.
void ask_all_threads() {
  const int folder = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const auto own = static_cast<pid_t>(::syscall(SYS_gettid));
  alignas(dirent64) std::array<char, 4096> entries{};
  for (;;) {
    const long size = ::syscall(SYS_getdents64, folder, entries.data(), entries.size());
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      pid_t thread = 0;
      for (const char* digit = entry->d_name; *digit >= '0' && *digit <= '9'; ++digit)
        thread = thread * 10 + *digit - '0';
      if (thread > 0 && thread != own) ask_thread(thread);
      at += entry->d_reclen;
    }
  }
  ::close(folder);
}

void write_stacks(const Target& target, bool of_all) {
  const int fd = ::open(target.stacks.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  write_stack(fd);
  if (of_all) {
    stacks_fd = fd;
    ask_all_threads();
    stacks_fd = -1;
  }
  ::close(fd);
}

void report(const Target& target, int signal, bool is_fatal) {
  const bool is_written = write_record(target, name_of(signal));
  write_stacks(target, !is_fatal);
  SignalText out(STDERR_FILENO);
  out.text("trainyard: rank ").number(target.rank).text(": ").text(name_of(signal));
  if (is_written)
    out.text(": collectives in ").text(target.file).text(", stacks in ").text(target.stacks).text("\n");
  else
    out.text(": ").text(target.file).text(" cannot be written\n");
}

void on_user_signal(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const bool is_asked = info->si_code == SI_TKILL && info->si_pid == ::getpid();
  if (const int fd = stacks_fd; is_asked && fd >= 0) {
    write_stack(fd);
    ++stacks_written;
  } else if (const Target* const target = active; target && !is_asked) {
    report(*target, signal, false);
  }
  errno = error;
}

struct sigaction former_fatal[kFatal.size()];

void on_fatal_signal(int signal, siginfo_t*, void*) {
  // From here on it is as if we were not there: a second fault ends the process at once.
  for (size_t i = 0; i < kFatal.size(); ++i) ::sigaction(kFatal[i], &former_fatal[i], nullptr);
  if (const Target* const target = active) report(*target, signal, true);
  ::raise(signal);  // comes when this handler returns
}

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

struct FlightRecorder::Handlers {
  Target target;
  struct sigaction former_user {};
  stack_t former_stack{};
  std::array<char, kAlternateStack> stack{};

  void install() {
    std::array<void*, 1> warm_up{};
    ::backtrace(warm_up.data(), 1);  // loads a library the first time, which a handler must not
    const stack_t alternate{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
    ::sigaltstack(&alternate, &former_stack);
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;  // as in rendezvous/stop.cpp
    action.sa_sigaction = on_user_signal;
    ::sigaction(SIGUSR1, &action, &former_user);
    action.sa_sigaction = on_fatal_signal;
    for (size_t i = 0; i < kFatal.size(); ++i) ::sigaction(kFatal[i], &action, &former_fatal[i]);
  }

  void remove() {
    ::sigaction(SIGUSR1, &former_user, nullptr);
    for (size_t i = 0; i < kFatal.size(); ++i) ::sigaction(kFatal[i], &former_fatal[i], nullptr);
    ::sigaltstack(&former_stack, nullptr);
  }
};

FlightRecorder::FlightRecorder(std::filesystem::path folder, int rank, int world)
    : handlers_(std::make_unique<Handlers>()) {
  Target& target = handlers_->target;
  const std::string suffix = ".rank-" + std::to_string(rank);
  target.folder = folder.string();
  target.file = (folder / ("flight" + suffix + ".json")).string();
  target.temporary = target.file + ".tmp";
  target.stacks = (folder / ("stacks" + suffix + ".txt")).string();
  target.host = this_host();
  target.rank = rank;
  target.world = world;
  const Target* none = nullptr;
  if (!active.compare_exchange_strong(none, &target)) throw std::logic_error("a second FlightRecorder in one process");
  handlers_->install();
}

FlightRecorder::~FlightRecorder() {
  handlers_->remove();
  active = nullptr;
}

void FlightRecorder::attach(std::shared_ptr<const comm::FlightRecord> record) {
  handlers_->target.record = record.get();
  record_ = std::move(record);
}

std::filesystem::path FlightRecorder::write(std::string_view reason) const {
  return write_record(handlers_->target, reason) ? std::filesystem::path(handlers_->target.file)
                                                 : std::filesystem::path();
}

}  // namespace trainyard::train
