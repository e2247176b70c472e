#include "hub/blob.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/open_file.h"
#include "base/text.h"
#include "common/hmac.h"
#include "common/write_all.h"

namespace trainyard::hub {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMostUnknown = uint64_t{1} << 30;  // of a file whose size nobody told
constexpr size_t kReadAtOnce = size_t{1} << 20;
constexpr std::chrono::seconds kTellEvery{10};

std::string what_of(const Wanted& wanted) {
  return fmt::format("{}: {}", to_string(wanted.name), wanted.file);
}

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
    if (bytes_ > most() || (wanted_.facts.size && bytes_ > *wanted_.facts.size)) begin_anew();
  }

  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool is_whole() const { return wanted_.facts.size ? bytes_ == *wanted_.facts.size : has_ended_; }
  void end() { has_ended_ = true; }

  void begin_anew() {
    if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) < 0) throw disk_error(path_, errno);
    bytes_ = 0;
  }

  /// False, and nothing is written, where there would be more than the hub said.
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
  [[nodiscard]] uint64_t most() const { return wanted_.facts.size.value_or(kMostUnknown); }

  void tell() {
    const auto now = Clock::now();
    if (now - told_ < kTellEvery) return;
    told_ = now;
    spdlog::info("{}: {} of {}", what_of(wanted_), human_bytes(bytes_), human_bytes(most()));
  }

  const Wanted& wanted_;
  fs::path path_;
  UniqueFd fd_;
  uint64_t bytes_ = 0;
  bool has_ended_ = false;
  Clock::time_point told_ = Clock::now();
};

void require_room(const Wanted& wanted, const fs::path& folder, uint64_t have) {
  if (!wanted.facts.size || *wanted.facts.size <= have) return;
  const uint64_t needed = *wanted.facts.size - have;
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < needed)
    throw InputError(
        fmt::format("{}: {} more are needed, but {} has room for {}; HF_HOME or HF_HUB_CACHE name another "
                    "place for the cache",
                    what_of(wanted), human_bytes(needed), folder.string(), human_bytes(space.available)));
}

/// Whether the answer's bytes go on where `from` ends: "bytes 100-199/200".
bool goes_on_from(const Answer& answer, uint64_t from) {
  return answer.status == 206 && answer.header("content-range").starts_with(fmt::format("bytes {}-", from));
}

/// One request for what is missing.
Answer try_once(Client& client, const Wanted& wanted, Incomplete& so_far) {
  const uint64_t from = so_far.bytes();
  bool has_begun = false;
  Answer answer = client.bytes(wanted.name, wanted.commit, wanted.file, from, [&](const Answer& head, auto bytes) {
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
                    what_of(wanted), human_bytes(wanted.facts.size.value_or(kMostUnknown))));
  if (answer.is_good()) so_far.end();
  return answer;
}

/// Tries until all bytes are there. Tries that bring nothing are counted.
void fill(Client& client, const Wanted& wanted, Incomplete& so_far) {
  for (int tries = 1; !so_far.is_whole(); ++tries) {
    const uint64_t before = so_far.bytes();
    Answer answer = try_once(client, wanted, so_far);
    if (so_far.is_whole()) return;
    if (answer.status == 416) {  // what is here is of some other file
      so_far.begin_anew();
      if (tries >= kMostTries) refuse(answer, wanted.name, what_of(wanted), client.settings());
      continue;
    }
    if (answer.is_good()) answer.failure = Failure::Cut, answer.reason = "the server ended before the last byte";
    if (so_far.bytes() > before) tries = 1;
    if (!is_worth_retry(answer) || tries >= kMostTries) refuse(answer, wanted.name, what_of(wanted), client.settings());
    spdlog::warn("{}: {} after {}; trying again", what_of(wanted),
                 answer.reason.empty() ? fmt::format("HTTP {}", answer.status) : answer.reason,
                 human_bytes(so_far.bytes()));
    std::this_thread::sleep_for(pause_before(tries, answer));
  }
}

/// "": the bytes are those that the hub told of.
std::string difference(const Wanted& wanted, const fs::path& path) {
  if (!wanted.facts.has_sha256) return "";
  const std::string here = sha256_of(path);
  return here == wanted.facts.etag ? ""
                                   : fmt::format("its sha256 is {}, but the hub tells {}", here, wanted.facts.etag);
}

/// What came, and whether it went on from what an earlier process left.
std::string fetch_bytes(Client& client, const Wanted& wanted, const fs::path& path, bool& went_on) {
  Incomplete so_far(wanted, path);
  went_on = so_far.bytes() > 0;
  require_room(wanted, path.parent_path(), so_far.bytes());
  if (went_on) spdlog::info("{}: going on after {}", what_of(wanted), human_bytes(so_far.bytes()));
  fill(client, wanted, so_far);
  so_far.keep_safe();
  return difference(wanted, path);
}

}  // namespace

std::string sha256_of(const fs::path& path) {
  const UniqueFd fd = open_to_read(path);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("OpenSSL has no SHA-256");
  std::vector<char> buffer(kReadAtOnce);
  for (ssize_t count = 0; (count = ::read(fd.get(), buffer.data(), buffer.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw disk_error(path, errno);
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<size_t>(count));
  }
  std::string digest(static_cast<size_t>(EVP_MD_size(EVP_sha256())), '\0');
  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return hex(digest);
}

void download(Client& client, const Wanted& wanted, const Target& target) {
  bool went_on = false;
  std::string wrong = fetch_bytes(client, wanted, target.incomplete, went_on);
  if (!wrong.empty() && went_on) {  // what an earlier process left may have been what was wrong
    spdlog::warn("{}: {}; all of it is downloaded again", what_of(wanted), wrong);
    fs::remove(target.incomplete);
    wrong = fetch_bytes(client, wanted, target.incomplete, went_on);
  }
  if (!wrong.empty()) {
    fs::remove(target.incomplete);
    throw InputError(fmt::format("{}: {}; what came is deleted: try again, and look for a proxy that changes it",
                                 what_of(wanted), wrong));
  }
  fs::rename(target.incomplete, target.complete);
}

}  // namespace trainyard::hub
