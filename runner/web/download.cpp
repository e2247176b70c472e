#include "web/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/open_file.h"
#include "base/text.h"
#include "common/write_all.h"

namespace trainyard::web {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMostUnknown = uint64_t{1} << 30;  // of a file whose size nobody told
constexpr std::chrono::seconds kTellEvery{10};

InputError disk_error(const fs::path& path, int code) {
  return InputError(fmt::format("{}: {}", path.string(), std::generic_category().message(code)));
}

/// The bytes of a file that have come so far, in a file that grows.
class Incomplete {
 public:
  Incomplete(const Wanted& wanted, fs::path path) : wanted_(wanted), path_(std::move(path)) {
    fd_ = open_to_write(path_, O_WRONLY | O_CREAT);
    if (!fd_.valid()) throw disk_error(path_, errno);
    const off_t end = ::lseek(fd_.get(), 0, SEEK_END);
    if (end < 0) throw disk_error(path_, errno);
    bytes_ = static_cast<uint64_t>(end);
    if (bytes_ > most() || (wanted_.size && bytes_ > *wanted_.size)) begin_anew();
  }

  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool is_whole() const { return wanted_.size ? bytes_ == *wanted_.size : has_ended_; }
  void end() { has_ended_ = true; }

  void begin_anew() {
    if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) < 0) throw disk_error(path_, errno);
    bytes_ = 0;
  }

  /// False, and nothing is written, where there would be more than the server said.
  bool add(std::span<const char> more) {
    if (bytes_ + more.size() > most()) return false;
    const Written written = write_all(fd_.get(), std::as_bytes(more));
    bytes_ += written.bytes;
    if (!written.is_complete()) throw disk_error(path_, written.error);
    tell();
    return true;
  }

  void keep_safe() {
    if (::fdatasync(fd_.get()) != 0) throw disk_error(path_, errno);
  }

 private:
  [[nodiscard]] uint64_t most() const { return wanted_.size.value_or(kMostUnknown); }

  void tell() {
    const auto now = Clock::now();
    if (now - told_ < kTellEvery) return;
    told_ = now;
    spdlog::info("{}: {} of {}", wanted_.what, human_bytes(bytes_), human_bytes(most()));
  }

  const Wanted& wanted_;
  fs::path path_;
  UniqueFd fd_;
  uint64_t bytes_ = 0;
  bool has_ended_ = false;
  Clock::time_point told_ = Clock::now();
};

void require_room(const Wanted& wanted, const fs::path& folder, uint64_t have) {
  if (!wanted.size || *wanted.size <= have) return;
  const uint64_t needed = *wanted.size - have;
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < needed)
    throw InputError(fmt::format("{}: {} more are needed, but {} has room for {}{}{}", wanted.what, human_bytes(needed),
                                 folder.string(), human_bytes(space.available), wanted.elsewhere.empty() ? "" : "; ",
                                 wanted.elsewhere));
}

/// Whether the answer's bytes go on where `from` ends: "bytes 100-199/200".
bool goes_on_from(const Answer& answer, uint64_t from) {
  return answer.status == 206 && answer.header("content-range").starts_with(fmt::format("bytes {}-", from));
}

/// One request for what is missing.
Answer try_once(const Wanted& wanted, Incomplete& so_far) {
  const uint64_t from = so_far.bytes();
  bool has_begun = false;
  Answer answer = wanted.ask(from, [&](const Answer& head, auto bytes) {
    if (!has_begun && from > 0 && !goes_on_from(head, from)) {
      if (head.status != 200) return false;
      so_far.begin_anew();  // a server that knows no ranges sends all of it
    }
    has_begun = true;
    return so_far.add(bytes);
  });
  if (answer.failure == Failure::Stopped)
    throw InputError(
        fmt::format("{}: the server sends other bytes than those that were asked for, or more than the {} "
                    "that it told of",
                    wanted.what, human_bytes(wanted.size.value_or(kMostUnknown))));
  if (answer.is_good()) so_far.end();
  return answer;
}

/// Tries until all bytes are there. Tries that bring nothing are counted.
void fill(const Wanted& wanted, Incomplete& so_far) {
  for (int tries = 1; !so_far.is_whole(); ++tries) {
    const uint64_t before = so_far.bytes();
    Answer answer = try_once(wanted, so_far);
    if (so_far.is_whole()) return;
    if (answer.status == 416) {  // what is here is of some other file
      so_far.begin_anew();
      if (tries >= kMostTries) wanted.refuse(answer);
      continue;
    }
    if (answer.is_good()) answer.failure = Failure::Cut, answer.reason = "the server ended before the last byte";
    if (so_far.bytes() > before) tries = 1;
    if (!is_worth_retry(answer) || tries >= kMostTries) wanted.refuse(answer);
    spdlog::warn("{}: {} after {}; trying again", wanted.what,
                 answer.reason.empty() ? fmt::format("HTTP {}", answer.status) : answer.reason,
                 human_bytes(so_far.bytes()));
    std::this_thread::sleep_for(pause_before(tries, answer));
  }
}

/// What of the bytes is wrong, once all have come; it goes on from what an earlier process left.
std::string fetch_bytes(const Wanted& wanted, const fs::path& path) {
  Incomplete so_far(wanted, path);
  require_room(wanted, path.parent_path(), so_far.bytes());
  if (so_far.bytes() > 0) spdlog::info("{}: going on after {}", wanted.what, human_bytes(so_far.bytes()));
  fill(wanted, so_far);
  so_far.keep_safe();
  return wanted.difference(path);
}

}  // namespace

uint64_t size_on_disk(const fs::path& file) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(file, error);
  return error ? 0 : bytes;
}

void download(const Wanted& wanted, const Target& target) {
  std::string wrong = fetch_bytes(wanted, target.incomplete);
  if (!wrong.empty()) {  // what an earlier process left may have been what was wrong, or a network that errs rarely
    spdlog::warn("{}: {}; all of it is downloaded again", wanted.what, wrong);
    fs::remove(target.incomplete);
    wrong = fetch_bytes(wanted, target.incomplete);
  }
  if (!wrong.empty()) {
    fs::remove(target.incomplete);
    throw InputError(fmt::format("{}: {}; what came is deleted: try again, and look for a proxy that changes it",
                                 wanted.what, wrong));
  }
  fs::rename(target.incomplete, target.complete);
}

}  // namespace trainyard::web
