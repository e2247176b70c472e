#include "comm/shared_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

namespace trainyard::comm {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRingHead = 256;
static_assert(sizeof(SharedSegment::Head) <= kPage && sizeof(Ring) <= kRingHead);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
constexpr const char* kPrefix = "trainyard-";

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string hex(const uint8_t* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

size_t size_with(int rings, size_t ring_bytes) {
  return kPage + static_cast<size_t>(rings) * (kRingHead + ring_bytes);
}

// A rank that is killed in the second between making its file and its peers' opening it leaves the file behind. Its
// lock is gone, so the next one cleans up.
void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    const UniqueFd file(::open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace

SharedSegment::SharedSegment(const std::string& folder) {
  remove_leftovers(folder);
  uint8_t random[32];
  if (::getrandom(random, sizeof random, 0) != sizeof random) throw_errno("random bytes");
  const std::string name = kPrefix + hex(random, 16);
  const std::string path = folder + "/" + name;
  identity_ = name + " " + hex(random + 16, 16);
  // Nameless until it is locked and filled in, so that nobody ever finds it half made.
  file_ = UniqueFd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file_.valid() || ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) throw_errno(folder);
  if (const int error = ::posix_fallocate(file_.get(), 0, kPage); error != 0)
    throw std::system_error(error, std::generic_category(), folder);
  map(0, 0);
  Head& head = *new (base_) Head{};
  std::memcpy(head.nonce, random + 16, sizeof head.nonce);
  const std::string nameless = fmt::format("/proc/self/fd/{}", file_.get());
  if (::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) throw_errno(path);
  path_ = path;
}

std::optional<SharedSegment> SharedSegment::open(const std::string& folder, const std::string& identity) {
  const size_t space = identity.find(' ');
  if (space == std::string::npos || identity.find('/') != std::string::npos) return std::nullopt;
  SharedSegment segment;
  segment.identity_ = identity;
  segment.file_ = UniqueFd(::open((folder + "/" + identity.substr(0, space)).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!segment.file_.valid() || ::fstat(segment.file_.get(), &status) != 0) return std::nullopt;
  if (static_cast<size_t>(status.st_size) < kPage) return std::nullopt;
  segment.map(0, 0);
  if (hex(segment.head().nonce, sizeof segment.head().nonce) != identity.substr(space + 1)) return std::nullopt;
  return segment;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      identity_(std::move(other.identity_)),
      file_(std::move(other.file_)),
      base_(std::exchange(other.base_, nullptr)),
      rings_(other.rings_),
      ring_bytes_(other.ring_bytes_) {}

SharedSegment::~SharedSegment() {
  unlink();
  unmap();
}

void SharedSegment::unlink() noexcept {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
}

bool SharedSegment::reserve(int rings, size_t ring_bytes) {
  return ::posix_fallocate(file_.get(), 0, static_cast<off_t>(size_with(rings, ring_bytes))) == 0;
}

void SharedSegment::map(int rings, size_t ring_bytes) {
  unmap();
  rings_ = rings;
  ring_bytes_ = ring_bytes;
  void* const address =
      ::mmap(nullptr, size_with(rings, ring_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (address == MAP_FAILED) throw_errno("mapping " + identity_);
  base_ = address;
}

void SharedSegment::unmap() noexcept {
  if (base_ != nullptr) ::munmap(base_, size_with(rings_, ring_bytes_));
  base_ = nullptr;
}

// A ring of zero bytes, as the kernel gives it, is an empty one: nobody has to construct it before the peers come.
Ring& SharedSegment::ring(int index) const {
  auto* const rings = static_cast<std::byte*>(base_) + kPage;
  return *reinterpret_cast<Ring*>(rings + static_cast<size_t>(index) * kRingHead);
}

std::byte* SharedSegment::ring_data(int index) const {
  const size_t heads = kPage + static_cast<size_t>(rings_) * kRingHead;
  return static_cast<std::byte*>(base_) + heads + static_cast<size_t>(index) * ring_bytes_;
}

bool SharedSegment::is_owner_alive() const {
  if (::flock(file_.get(), LOCK_SH | LOCK_NB) != 0) return true;
  ::flock(file_.get(), LOCK_UN);
  return false;
}

}  // namespace trainyard::comm
