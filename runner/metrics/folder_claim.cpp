#include "metrics/folder_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/host_name.h"
#include "base/links.h"

namespace trainyard::metrics {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr const char* kFileName = ".run";

[[noreturn]] void fail(const fs::path& path, int error) {
  const fs::path link = dangling_link(path);
  throw InputError(fmt::format("metrics.dir: {}: {}", path.string(),
                               link.empty() ? std::strerror(error) : "a symbolic link that leads to nothing"));
}

/// What stands in the file; an empty object while somebody writes it.
json claim_in(const UniqueFd& fd) {
  std::array<char, 1024> text{};
  const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
  const json claim = json::parse(text.data(), text.data() + std::max<ssize_t>(size, 0), nullptr, false);
  return claim.is_object() ? claim : json::object();
}

std::string random_life() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

FolderClaim::FolderClaim(const fs::path& folder, std::string job, int64_t generation)
    : folder_(folder), job_(std::move(job)), life_(random_life()) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, error.value());
  const fs::path file = folder / kFileName;
  fd_ = UniqueFd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd_.valid()) fail(folder, errno);
  // A file system without locks gives another error; then what stands in the file has to do.
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse_where_taken(file, generation);
  write(generation);
}

/// It asks for whoever holds the lock.
void FolderClaim::refuse_where_taken(const fs::path& file, int64_t generation) const {
  const json other = claim_in(fd_);
  const bool is_ours = !job_.empty() && other.value("job", "") == job_;
  if (is_ours && other.value("generation", int64_t{0}) <= generation) {
    spdlog::warn("{}: an earlier start of this job, process {} on {}, is still there; its lines end here",
                 file.parent_path().string(), other.value("pid", 0), other.value("host", ""));
    return;
  }
  throw InputError(fmt::format(
      "metrics.dir: {}: {} writes its metrics there, process {} on {}; end it, or choose another folder with metrics.dir",
      folder_.string(), is_ours ? "a newer generation of this job" : "another run", other.value("pid", 0),
      other.value("host", "this host")));
}

void FolderClaim::write(int64_t generation) {
  const std::string text =
      json{{"job", job_}, {"generation", generation}, {"life", life_}, {"pid", ::getpid()}, {"host", host_name()}}.dump();
  const bool is_written = ::pwrite(fd_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
                          ::ftruncate(fd_.get(), static_cast<off_t>(text.size())) == 0;
  if (!is_written) spdlog::warn("{}: who writes here could not be noted: {}", folder_.string(), std::strerror(errno));
}

bool FolderClaim::is_held() {
  if (is_lost_) return false;
  const std::string life = claim_in(fd_).value("life", life_);
  if (life == life_) return true;
  spdlog::warn("metrics.dir: {}: a later start of this job writes there now; this one writes no more", folder_.string());
  is_lost_ = true;
  return false;
}

}  // namespace trainyard::metrics
