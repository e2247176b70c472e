#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/disk.h"
#include "checkpoint/manifest.h"

// Small files that are held in memory and written beside weights, as they came (files_beside.h says which).
namespace trainyard::checkpoint {

constexpr uint64_t kMaxCopiedBytes = uint64_t{256} << 20;  ///< of one file

struct FileBeside {
  std::string name, content;
};
using FilesBeside = std::vector<FileBeside>;

/// Throws InputError, naming the file, where one cannot be read.
FilesBeside read_files(std::span<const std::filesystem::path> paths);

/// Writes them into `folder`, durable. Throws std::filesystem::filesystem_error.
std::vector<StoredFile> write_files(Disk& disk, const std::filesystem::path& folder, const FilesBeside& files);

}  // namespace trainyard::checkpoint
