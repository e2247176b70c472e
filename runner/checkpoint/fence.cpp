#include "checkpoint/fence.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/open_file.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kLockName = ".lock";
constexpr std::chrono::seconds kLockPatience{10};  // a holder renames a few names; longer means that it was frozen
constexpr std::chrono::milliseconds kLockRetry{20};

std::optional<Owner> read_claim(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  const json text = json::parse(read_file(path, 4096), nullptr, false);
  if (!text.is_object()) return std::nullopt;  // not ours to understand; the next claim replaces it
  return Owner{text.value("job", ""), text.value("generation", int64_t{0}), text.value("life", "")};
}

bool is_alone(const fs::path& claim) {
  return std::ranges::all_of(fs::directory_iterator(claim.parent_path()), [&](const fs::directory_entry& entry) {
    return entry.path() == claim || entry.path().filename() == kLockName;
  });
}

}  // namespace

Fence::Lock::Lock(const fs::path& folder) {
  UniqueFd fd = open_to_write(folder / kLockName, O_RDWR | O_CREAT);
  if (!fd.valid()) return;
  const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;  // this file system has no locks
    if (std::chrono::steady_clock::now() > deadline) {
      spdlog::warn("{}: another process has held the lock for {} s; going on without it", (folder / kLockName).string(),
                   kLockPatience.count());
      return;
    }
    std::this_thread::sleep_for(kLockRetry);
  }
  fd_ = std::move(fd);
}

void Fence::claim(const Owner& owner) {
  const Lock lock(folder_);
  const auto before = read_claim(claim_);
  // Without a token and a generation nobody counts lives: a person starts a run, and means this one.
  const bool is_counted = !owner.job.empty() || owner.generation > 0;
  if (before && is_counted && before->job == owner.job && before->generation > owner.generation)
    throw InputError(
        fmt::format("{}: generation {} of this job has written here, this is generation {}; a process left over from "
                    "an earlier life?",
                    folder_.string(), before->generation, owner.generation));
  const json text{{"job", owner.job}, {"generation", owner.generation}, {"life", owner.life}};
  write_file_atomically(claim_, text.dump());
}

void Fence::check(const Owner& owner) const {
  const auto now = read_claim(claim_);
  if (now && now->life == owner.life) return;
  if (!now)
    throw InputError(
        fmt::format("{}: its {} file has gone; does another program clean this folder?", folder_.string(), claim_.filename().string()));
  throw InputError(fmt::format(
      "{}: {} has claimed the folder since this run began; its checkpoints count, not ours", folder_.string(),
      now->job == owner.job ? fmt::format("generation {} of this job", now->generation) : "another job"));
}

void Fence::withdraw(const Owner& owner) {
  const Lock lock(folder_);
  const auto now = read_claim(claim_);
  if (!now || now->life != owner.life || !is_alone(claim_)) return;
  for (const fs::path& each : {claim_, folder_ / kLockName, folder_}) fs::remove(each);
}

}  // namespace trainyard::checkpoint
