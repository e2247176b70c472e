#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/disk.h"
#include "checkpoint/manifest.h"

namespace trainyard::checkpoint {

/// A tensor that is read some rows at a time.
struct RowSource {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;  ///< one dimension or more
  std::function<Tensor(int64_t begin, int64_t count)> read;
};

/// Calls `take` with all rows of `source` from `begin` to `end`, in order, at most some 64 MiB at once.
void for_each_piece(const RowSource& source, int64_t begin, int64_t end,
                    const std::function<void(const Tensor&)>& take);

/// The files that `world` ranks would write of `tensors` (shard_file.h), each rank's rows as torch.chunk deals them.
std::vector<StoredFile> write_rank_files(Disk& disk, const std::filesystem::path& folder, Kind kind, int world,
                                         std::span<const RowSource> tensors);

/// A folder that appears under its name complete or not at all.
class NewFolder {
 public:
  /// Throws InputError, beginning with `option`, where `output` is there and not an empty folder, or cannot be made.
  NewFolder(const std::filesystem::path& output, std::string option);
  /// What was not finished goes.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where to write until finish().
  [[nodiscard]] const std::filesystem::path& path() const { return temporary_; }
  /// Runs `write` and puts the folder in its place. A failing disk becomes InputError.
  void fill(const std::function<void()>& write);

 private:
  std::string option_;
  std::filesystem::path target_, temporary_;
};

}  // namespace trainyard::checkpoint
