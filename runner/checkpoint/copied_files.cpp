#include "checkpoint/copied_files.h"

#include "base/files.h"
#include "checkpoint/checksum.h"

namespace trainyard::checkpoint {

namespace fs = std::filesystem;

FilesBeside read_files(std::span<const fs::path> paths) {
  FilesBeside files;
  for (const fs::path& path : paths) files.push_back({path.filename().string(), read_file(path, kMaxCopiedBytes)});
  return files;
}

std::vector<StoredFile> write_files(Disk& disk, const fs::path& folder, const FilesBeside& files) {
  std::vector<StoredFile> written;
  for (const auto& [name, content] : files) {
    write_file(disk, folder / name, content);
    written.push_back({name, content.size(), checksum_of(content)});
  }
  return written;
}

}  // namespace trainyard::checkpoint
