#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/byte_io.h"

namespace trainyard::checkpoint {

/// Everything that a save does to the file system, so that tests can make operation n fail or be the last one.
/// All throw std::filesystem::filesystem_error, naming the path and the system's reason. Threads may call at once.
class Disk {
 public:
  virtual ~Disk() = default;

  virtual void create_folders(const std::filesystem::path& folder) = 0;
  /// A new file; an existing one is emptied.
  [[nodiscard]] virtual std::unique_ptr<ByteSink> create(const std::filesystem::path& file) = 0;
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// `to` becomes the folder `from`, in one step where the file system can; what was `to` is `from` afterwards, or
  /// gone.
  virtual void swap_in(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void remove_all(const std::filesystem::path& path) = 0;
  /// What was created or renamed in `folder` survives a power cut afterwards.
  virtual void sync_folder(const std::filesystem::path& folder) = 0;
};

/// The file system itself.
std::shared_ptr<Disk> real_disk();

/// A durable file with this content. Not atomic: for names that nobody reads yet.
void write_file(Disk& disk, const std::filesystem::path& file, std::string_view content);

/// remove_all for what nobody waits for: a failure is swallowed, the next clean-up tries again.
void try_to_remove(Disk& disk, const std::filesystem::path& path);

}  // namespace trainyard::checkpoint
