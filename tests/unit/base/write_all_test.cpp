#include "common/write_all.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "common/unique_fd.h"

namespace trainyard {
namespace {

constexpr int kPipeBytes = 4096;  // the smallest that a pipe can hold

struct Pipe {
  explicit Pipe(int flags) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    to_read = UniqueFd(ends[0]);
    to_write = UniqueFd(ends[1]);
    REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes) == kPipeBytes);
    REQUIRE(::fcntl(ends[1], F_SETFL, flags) == 0);
  }
  UniqueFd to_read, to_write;
};

/// Far more than a pipe holds, and each place in it is known by its neighbours.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < size_t{20} * kPipeBytes; ++i) text += std::to_string(i) + ' ';
  return text;
}

/// Takes few bytes at a time until the writer has closed its end.
std::string read_to_end(int fd) {
  std::string all;
  std::array<char, 1000> bytes{};
  for (ssize_t count = 0; (count = ::read(fd, bytes.data(), bytes.size())) > 0;)
    all.append(bytes.data(), static_cast<size_t>(count));
  return all;
}

void wait_until_full(const Pipe& pipe) {
  for (int held = 0; held < kPipeBytes; std::this_thread::yield()) ::ioctl(pipe.to_read.get(), FIONREAD, &held);
}

int write_here_on_signal = -1;

void on_signal(int) {
  const char byte = 0;
  static_cast<void>(::write(write_here_on_signal, &byte, 1) == 1);
}

/// Its handler runs in between, and has system calls end early (no SA_RESTART).
class InterruptingSignal {
 public:
  InterruptingSignal() : pipe_(0) {
    write_here_on_signal = pipe_.to_write.get();
    struct sigaction action {};
    action.sa_handler = &on_signal;
    REQUIRE(::sigaction(SIGUSR1, &action, &before_) == 0);
  }
  ~InterruptingSignal() { ::sigaction(SIGUSR1, &before_, nullptr); }
  InterruptingSignal(const InterruptingSignal&) = delete;
  InterruptingSignal& operator=(const InterruptingSignal&) = delete;

  /// It returns once the handler has run in that thread.
  void send(pthread_t thread) const {
    ::pthread_kill(thread, SIGUSR1);
    char byte = 0;
    while (::read(pipe_.to_read.get(), &byte, 1) != 1) {
    }
  }

 private:
  Pipe pipe_;
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("write_all: a pipe that takes a part at a time gets all of the text", "[base]") {
  const auto [flags, when_full] =
      GENERATE(table<int, WhenFull>({{0, WhenFull::Stop}, {0, WhenFull::Wait}, {O_NONBLOCK, WhenFull::Wait}}));
  Pipe pipe(flags);
  const std::string text = long_text();
  std::string come;
  std::thread reader([&] {
    wait_until_full(pipe);
    come = read_to_end(pipe.to_read.get());
  });
  const Written written = write_all(pipe.to_write.get(), text, when_full);
  pipe.to_write.reset();
  reader.join();
  CHECK(written.is_complete());
  CHECK(written.bytes == text.size());
  CHECK(come == text);
}

TEST_CASE("write_all: it goes on where a signal comes in between", "[base]") {
  Pipe pipe(0);
  const InterruptingSignal signal;
  const std::string text = long_text();
  const pthread_t writer = ::pthread_self();
  std::string come;
  std::thread reader([&] {
    wait_until_full(pipe);
    for (int i = 0; i < 50; ++i)
      signal.send(writer);  // the first ends a write after a part of it, later ones with EINTR
    come = read_to_end(pipe.to_read.get());
  });
  const Written written = write_all(pipe.to_write.get(), text);
  pipe.to_write.reset();
  reader.join();
  CHECK(written.is_complete());
  CHECK(come == text);
}

TEST_CASE("write_all: what stops it is told, with how much was written before", "[base]") {
  const std::string text = long_text();
  Pipe full(O_NONBLOCK);
  const Written stopped = write_all(full.to_write.get(), text, WhenFull::Stop);
  CHECK(stopped.error == EAGAIN);
  CHECK(stopped.bytes == kPipeBytes);

  Pipe unread(0);
  unread.to_read.reset();
  void (*const before)(int) = ::signal(SIGPIPE, SIG_IGN);
  const Written unheard = write_all(unread.to_write.get(), text, WhenFull::Wait);
  ::signal(SIGPIPE, before);
  CHECK(unheard.error == EPIPE);
  CHECK(unheard.bytes == 0);

  const UniqueFd device(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CHECK(write_all(device.get(), text).error == ENOSPC);
  CHECK(write_all(-1, text).error == EBADF);
}

TEST_CASE("write_all: nothing to write is complete, whatever the descriptor", "[base]") {
  CHECK(write_all(-1, "").is_complete());
}

}  // namespace trainyard
