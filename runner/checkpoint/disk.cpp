#include "checkpoint/disk.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <stdio.h>

#include <cerrno>
#include <system_error>

#include "base/files.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

class RealDisk : public Disk {
 public:
  void create_folders(const fs::path& folder) override { fs::create_directories(folder); }
  std::unique_ptr<ByteSink> create(const fs::path& file) override { return std::make_unique<FileSink>(file); }
  void rename(const fs::path& from, const fs::path& to) override { fs::rename(from, to); }
  void swap_in(const fs::path& from, const fs::path& to) override;
  void remove_all(const fs::path& path) override { fs::remove_all(path); }
  void sync_folder(const fs::path& folder) override { trainyard::sync_folder(folder); }
};

void RealDisk::swap_in(const fs::path& from, const fs::path& to) {
  if (!fs::exists(to)) return fs::rename(from, to);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS)
    throw fs::filesystem_error("exchange", from, to, std::error_code(errno, std::generic_category()));
  // NFS and others cannot exchange. A crash between these two lines loses `to`, whose content `from` was to replace.
  fs::rename(to, from.string() + ".replaced.tmp");
  fs::rename(from, to);
  fs::remove_all(from.string() + ".replaced.tmp");
}

}  // namespace

std::shared_ptr<Disk> real_disk() {
  return std::make_shared<RealDisk>();
}

void write_file(Disk& disk, const fs::path& file, std::string_view content) {
  const std::unique_ptr<ByteSink> sink = disk.create(file);
  sink->write(content);
  sink->finish();
}

void try_to_remove(Disk& disk, const fs::path& path) {
  try {
    disk.remove_all(path);
  } catch (const std::exception& error) {
    spdlog::debug("left behind for the next clean-up: {}", error.what());
  }
}

}  // namespace trainyard::checkpoint
