#include "data/cache_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/open_file.h"
#include "base/text.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

static_assert(std::endian::native == std::endian::little, "append() cuts an id to its first bytes");

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kIdsAtOnce = size_t{1} << 16;
constexpr std::chrono::milliseconds kPollInterval{20};

void write_at(int fd, std::span<const std::byte> bytes, off_t at, const auto& fail) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    bytes = bytes.subspan(static_cast<size_t>(n));
    at += n;
  }
}

UniqueFd open_partial(const fs::path& partial) {
  UniqueFd fd = open_to_write(partial, O_RDWR | O_CREAT);
  if (!fd.valid())
    throw InputError(fmt::format("{}: {}; set data.cache_dir to a folder that can be written", partial.string(),
                                 std::strerror(errno)));
  return fd;
}

off_t size_of(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 ? file.st_size : 0;
}

/// Whether `fd` still is the file of that name: who held the lock before has renamed or removed it otherwise.
bool is_still(int fd, const fs::path& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 && open_file.st_ino == named.st_ino &&
         open_file.st_dev == named.st_dev;
}

enum class Lock { Taken, Busy, Unsupported };

Lock try_lock(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return Lock::Taken;
  return errno == EWOULDBLOCK || errno == EINTR ? Lock::Busy : Lock::Unsupported;
}

}  // namespace

CacheHeader read_cache_header(const MappedFile& file) {
  const auto bytes = file.bytes();
  CacheHeader header;
  const bool has_header = bytes.size() >= sizeof(header);
  if (has_header) std::memcpy(&header, bytes.data(), sizeof(header));
  const bool is_ours = has_header && (header.magic == kAllCount || header.magic == kSomeCount) &&
                       header.byte_order == CacheHeader{}.byte_order;
  const bool has_width = (header.bytes_an_id == 2 && header.magic == kAllCount) || header.bytes_an_id == 4;
  if (!is_ours || !has_width || header.ids != (bytes.size() - sizeof(header)) / header.bytes_an_id ||
      (bytes.size() - sizeof(header)) % header.bytes_an_id != 0)
    throw InputError(fmt::format("{}: not a whole token cache file", file.path().string()));
  return header;
}

std::optional<CacheWriter> CacheWriter::begin(const fs::path& file, const CacheHeader& header,
                                              std::chrono::milliseconds timeout, const Tokenising& how) {
  auto last_grown = Clock::now();
  off_t size = 0;
  fs::path partial = file.string() + ".partial";
  UniqueFd fd = open_partial(partial);
  for (;; std::this_thread::sleep_for(kPollInterval)) {
    if (!is_still(fd.get(), partial)) fd = open_partial(partial);
    const Lock lock = try_lock(fd.get());
    if (lock ==
        Lock::Unsupported) {  // some network file systems: each writes a file of its own, the last to rename wins
      ::unlink(partial.c_str());
      std::random_device random;  // a process number is its own only on its host
      partial += fmt::format(".{:08x}{:08x}", random(), random());
      fd = open_partial(partial);
    }
    const bool is_ours = lock != Lock::Busy && is_still(fd.get(), partial);
    const bool is_done = fs::exists(file);
    if (is_done && is_ours) ::unlink(partial.c_str());
    if (is_done) return std::nullopt;
    if (is_ours) break;
    stop_if_asked(how, "waiting for who writes " + partial.string());
    if (const off_t now = size_of(fd.get()); now != std::exchange(size, now)) last_grown = Clock::now();
    if (Clock::now() - last_grown > timeout)
      throw PeerError(
          fmt::format("{}: another process tokenises the corpus into it, but has written nothing for {}; "
                      "fuser tells which one has it open",
                      partial.string(), human_duration(timeout)));
  }
  CacheWriter writer(file, partial, std::move(fd));
  if (::ftruncate(writer.fd_.get(), sizeof(CacheHeader)) != 0)
    writer.fail("truncate");  // a dead process may have left some
  writer.header_ = header;
  return writer;
}

void CacheWriter::set_key(const std::string& key) {
  std::copy_n(key.begin(), std::min(key.size(), header_.key.size()), header_.key.begin());
}

CacheWriter::~CacheWriter() {
  if (fd_.valid()) ::unlink(partial_.c_str());
}

void CacheWriter::append(std::span<const int32_t> ids) {
  header_.ids += ids.size();
  const size_t bytes_an_id = header_.bytes_an_id;
  while (!ids.empty()) {
    const std::span<const int32_t> some = ids.first(std::min(ids.size(), kIdsAtOnce));
    size_t at = buffer_.size();
    buffer_.resize(at + some.size() * bytes_an_id);
    for (const int32_t id : some) {
      std::memcpy(buffer_.data() + at, &id, bytes_an_id);
      at += bytes_an_id;
    }
    if (buffer_.size() >= kBufferBytes) flush();
    ids = ids.subspan(some.size());
  }
}

void CacheWriter::flush() {
  const off_t end = ::lseek(fd_.get(), 0, SEEK_END);
  write_at(fd_.get(), buffer_, end, [this](const char* what) { fail(what); });
  buffer_.clear();
}

void CacheWriter::commit() {
  flush();
  write_at(fd_.get(), std::as_bytes(std::span(&header_, 1)), 0, [this](const char* what) { fail(what); });
  if (::fsync(fd_.get()) != 0) fail("fsync");
  if (::rename(partial_.c_str(), file_.c_str()) != 0) fail("rename");
  sync_folder(file_.parent_path());
  fd_.reset();
}

void CacheWriter::fail(const char* what) const {
  throw InputError(fmt::format("{}: {}: {}; data.cache_dir says where tokenised corpora go", partial_.string(), what,
                               std::strerror(errno)));
}

}  // namespace trainyard::data
