#include "checkpoint/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/checksum.h"
#include "checkpoint/folder_group.h"
#include "checkpoint/layout.h"
#include "checkpoint/shard_file.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPieceBytes = int64_t{64} << 20;  // of a tensor on its way from file to file

}  // namespace

void for_each_piece(const RowSource& source, int64_t begin, int64_t end,
                    const std::function<void(const Tensor&)>& take) {
  const int64_t rows = std::max<int64_t>(source.shape.at(0), 1);
  const int64_t row_bytes = count_of(source.shape) * static_cast<int64_t>(size_of(source.dtype)) / rows;
  const int64_t at_once = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, row_bytes));
  for (int64_t row = begin; row < end; row += at_once) take(source.read(row, std::min(at_once, end - row)));
}

std::vector<StoredFile> write_rank_files(Disk& disk, const fs::path& folder, Kind kind, int world,
                                         std::span<const RowSource> tensors) {
  std::vector<StoredFile> files;
  for (int rank = 0; rank < world; ++rank) {
    std::vector<SafetensorsWriter::Declared> declared;
    std::vector<Shard> placed;
    for (const RowSource& tensor : tensors) {
      const int64_t rows = tensor.shape.at(0), chunk = (rows + world - 1) / world;
      const int64_t begin = std::min(rows, rank * chunk);
      Shape local = tensor.shape;
      local[0] = std::min(chunk, rows - begin);
      if (count_of(local) == 0) continue;
      declared.push_back({tensor.name, tensor.dtype, local});
      placed.push_back({tensor.name, tensor.shape, begin, {}});
    }
    if (declared.empty()) continue;
    const fs::path path = folder / shard_file_name(kind == Kind::Model ? "model" : "optim", rank);
    ChecksumSink::Seen seen;
    SafetensorsWriter writer(std::make_unique<ChecksumSink>(disk.create(path), seen), declared,
                             sharding_metadata(placed));
    for (size_t i = 0; i < declared.size(); ++i) {
      const auto source = std::ranges::find(tensors, declared[i].name, &RowSource::name);
      for_each_piece(*source, placed[i].row_offset, placed[i].row_offset + declared[i].shape[0],
                     [&](const Tensor& piece) { writer.append(piece); });
    }
    writer.finish();
    files.push_back({path.filename().string(), seen.bytes, seen.checksum.text()});
  }
  return files;
}

NewFolder::NewFolder(const fs::path& output, std::string option) : option_(std::move(option)) {
  const fs::path absolute = fs::absolute(output).lexically_normal();
  if (fs::exists(absolute) && !(fs::is_directory(absolute) && fs::is_empty(absolute)))
    throw InputError(fmt::format("{} {}: is there already and not an empty folder", option_, absolute.string()));
  target_ = absolute.has_filename() ? absolute : absolute.parent_path();
  temporary_ = target_.parent_path() / fmt::format(".{}.{}.tmp", target_.filename().string(), random_name());
}

NewFolder::~NewFolder() {
  std::error_code ignored;  // a failure on the way here is the one worth reporting
  fs::remove_all(temporary_, ignored);
}

void NewFolder::fill(const std::function<void()>& write) {
  try {
    fs::create_directories(temporary_);
    write();
    sync_folder(temporary_);
    fs::rename(temporary_, target_);
    sync_folder(target_.parent_path());
  } catch (const fs::filesystem_error& error) {
    throw InputError(fmt::format("{} {}: {}", option_, target_.string(), error.what()));
  }
}

}  // namespace trainyard::checkpoint
