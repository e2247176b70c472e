#include "checkpoint/reader.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/open_file.h"
#include "base/text.h"
#include "checkpoint/checksum.h"
#include "checkpoint/rank_files.h"
#include "tensor/copy_2d.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

/// A vector has one.
Rows all_columns_of(const Shape& shape) {
  return {0, shape.size() > 1 ? shape[1] : 1};
}

Rows common(Rows a, Rows b) {
  const int64_t begin = std::max(a.begin, b.begin), end = std::min(a.begin + a.count, b.begin + b.count);
  return {begin, std::max<int64_t>(end - begin, 0)};
}

/// Columns (dim 1) of `from` into those of `to` from `to_begin` on, on the host; what lies in a column stays together.
void copy_columns(const Tensor& from, int64_t begin, int64_t count, Tensor& to, int64_t to_begin) {
  const int64_t rows = from.size(0), from_columns = all_columns_of(from.shape()).count,
                to_columns = all_columns_of(to.shape()).count;
  if (from_columns == count && to_columns == count) return copy(from, to);
  const auto column = static_cast<int64_t>(from.bytes()) / (rows * from_columns);
  copy_2d(to.raw() + to_begin * column, to_columns * column, from.raw() + begin * column, from_columns * column,
          count * column, rows);
}

}  // namespace

Checkpoint::Checkpoint(fs::path folder) : Checkpoint(folder, read_manifest(folder)) {}

Checkpoint::Checkpoint(fs::path folder, Manifest manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)), open_(manifest_.files.size()) {
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) index_.emplace(manifest_.tensors[i].name, i);
}

const nlohmann::json* Checkpoint::rank_state(int rank, int world) const {
  const auto found = std::ranges::find(manifest_.members, rank);
  if (world != manifest_.world || found == manifest_.members.end()) return nullptr;
  return &manifest_.rank_states.at(static_cast<size_t>(found - manifest_.members.begin()));
}

const StoredTensor& Checkpoint::tensor(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) throw InputError(fmt::format("{}: no tensor '{}'", folder_.string(), name));
  return manifest_.tensors[found->second];
}

Tensor Checkpoint::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  return read_block(name, {begin, count}, all_columns_of(tensor(name).shape));
}

Tensor Checkpoint::read_block(const std::string& name, Rows rows, Rows columns) const {
  const StoredTensor& stored = tensor(name);
  if (rows.begin < 0 || rows.count < 0 || rows.count > stored.shape.at(0) - rows.begin)
    throw InputError(fmt::format("{}: tensor '{}': {} rows from {} on of shape {}", folder_.string(), name, rows.count,
                                 rows.begin, to_string(stored.shape)));
  Shape shape = stored.shape;
  shape[0] = rows.count;
  if (shape.size() > 1) shape[1] = columns.count;
  Tensor block = Tensor::empty(shape, stored.dtype);
  int64_t missing = block.count();
  const int64_t of_column = count_of(shape) == 0 ? 0 : block.count() / (rows.count * columns.count);
  for (const StoredRows& part : stored.shards) {
    const Rows there =
        part.columns == StoredRows::kAllColumns ? all_columns_of(stored.shape) : Rows{part.column_offset, part.columns};
    const Rows wanted = common(rows, {part.row_offset, part.rows}), across = common(columns, there);
    if (wanted.count == 0 || across.count == 0) continue;
    const Tensor read = file(part.file).read_rows(name, wanted.begin - part.row_offset, wanted.count);
    Tensor target = block.rows(wanted.begin - rows.begin, wanted.count);
    copy_columns(read, across.begin - there.begin, across.count, target, across.begin - columns.begin);
    missing -= wanted.count * across.count * of_column;
  }
  if (missing > 0)
    throw InputError(
        fmt::format("{}: tensor '{}': a part of rows {} to {} is not here{}", folder_.string(), name, rows.begin,
                    rows.begin + rows.count - 1,
                    manifest_.is_shared()
                        ? ""
                        : "; this folder is one host's part of the checkpoint, resume with the same ranks on it"));
  return block;
}

void Checkpoint::read_into(Shard& shard) const {
  const StoredTensor& stored = tensor(shard.name);
  if (stored.shape != shard.global_shape)
    throw InputError(fmt::format("{}: tensor '{}' has shape {}, the model's has {}", folder_.string(), shard.name,
                                 to_string(stored.shape), to_string(shard.global_shape)));
  const bool is_empty = !shard.local.defined() || shard.local.count() == 0;
  if (is_empty && !share_) return;
  if (!is_empty && stored.dtype != shard.local.dtype())
    throw InputError(fmt::format("{}: tensor '{}' is {}, {} is needed", folder_.string(), shard.name,
                                 name_of(stored.dtype), name_of(shard.local.dtype())));
  const int64_t first = shard.row_offset, end = is_empty ? first : first + shard.local.size(0);
  const Rows all = all_columns_of(stored.shape);
  const Rows columns = is_empty || stored.shape.size() < 2 ? all : Rows{shard.column_offset, shard.local.size(1)};
  const RowSource source{
      shard.name, stored.dtype, stored.shape, [&](int64_t begin, int64_t count) {
        return share_ ? shared_rows(stored, begin, count) : read_block(shard.name, {begin, count}, columns);
      }};
  int64_t next = share_ ? 0 : first;
  for_each_piece(source, next, share_ ? stored.shape[0] : end, [&](const Tensor& piece) {
    const int64_t from = std::max(next, first), to = std::min(next + piece.size(0), end);
    if (from < to) {
      Tensor rows = piece.rows(from - next, to - from), place = shard.local.rows(from - first, to - from);
      if (rows.shape() != place.shape()) {  // what was read for all ranks has all columns
        Tensor own = Tensor::empty(place.shape(), rows.dtype());
        copy_columns(rows, columns.begin, columns.count, own, 0);
        rows = own;
      }
      copy(rows, place);
    }
    next += piece.size(0);
  });
}

Tensor Checkpoint::shared_rows(const StoredTensor& stored, int64_t begin, int64_t count) const {
  Shape shape = stored.shape;
  shape[0] = count;
  Tensor rows = is_reader_ ? read_rows(stored.name, begin, count) : Tensor::empty(shape, stored.dtype);
  share_(rows);
  return rows;
}

void Checkpoint::read_for_all(bool is_reader, std::function<void(Tensor& rows)> share) {
  is_reader_ = is_reader;
  share_ = std::move(share);
}

const SafetensorsFile& Checkpoint::file(size_t index) const {
  auto& opened = open_.at(index);
  if (!opened) opened = std::make_unique<SafetensorsFile>(folder_ / manifest_.files[index].name);
  return *opened;
}

std::optional<std::string> find_damage(const Checkpoint& checkpoint, int part, int parts) {
  const std::vector<StoredFile>& files = checkpoint.manifest().files;
  for (size_t index = 0; index < files.size(); ++index) {
    if (static_cast<int>(index % static_cast<size_t>(parts)) != part) continue;
    const fs::path path = checkpoint.path() / files[index].name;
    try {
      const uint64_t bytes = FileSource(path).size();
      if (bytes != files[index].bytes)
        return fmt::format("{}: {} bytes, {} were written", path.string(), bytes, files[index].bytes);
      if (const std::string checksum = checksum_of_file(path); checksum != files[index].checksum)
        return fmt::format("{}: its content has changed: checksum {}, {} was written", path.string(), checksum,
                           files[index].checksum);
    } catch (const DeniedError&) {
      throw;
    } catch (const InputError& error) {
      return error.what();
    }
  }
  return std::nullopt;
}

void log_loaded(const Checkpoint& checkpoint, double seconds) {
  spdlog::info("Loaded checkpoint from step {} ({}, {}, {:.2f} s)", checkpoint.step(), checkpoint.path().string(),
               human_bytes(checkpoint.manifest().bytes()), seconds);
}

}  // namespace trainyard::checkpoint
