#include "checkpoint/reader.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/checksum.h"
#include "checkpoint/rank_files.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

}  // namespace

Checkpoint::Checkpoint(fs::path folder)
    : folder_(std::move(folder)), manifest_(read_manifest(folder_)), open_(manifest_.files.size()) {
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
  const StoredTensor& stored = tensor(name);
  if (begin < 0 || count < 0 || count > stored.shape.at(0) - begin)
    throw InputError(fmt::format("{}: tensor '{}': {} rows from {} on of shape {}", folder_.string(), name, count,
                                 begin, to_string(stored.shape)));
  Shape shape = stored.shape;
  shape[0] = count;
  Tensor rows = Tensor::empty(shape, stored.dtype);
  int64_t next = begin;  // rows before it have been read
  for (const StoredRows& part : stored.shards) {
    const int64_t end = std::min(part.row_offset + part.rows, begin + count);
    if (part.row_offset > next || end <= next) continue;
    const Tensor read = file(part.file).read_rows(name, next - part.row_offset, end - next);
    Tensor target = rows.rows(next - begin, end - next);
    copy(read, target);
    next = end;
  }
  if (next < begin + count && rows.count() > 0)
    throw InputError(
        fmt::format("{}: tensor '{}': row {} is not here{}", folder_.string(), name, next,
                    manifest_.is_shared()
                        ? ""
                        : "; this folder is one host's part of the checkpoint, resume with the same ranks on it"));
  return rows;
}

void Checkpoint::read_into(Shard& shard) const {
  const StoredTensor& stored = tensor(shard.name);
  if (stored.shape != shard.global_shape)
    throw InputError(fmt::format("{}: tensor '{}' has shape {}, the model's has {}", folder_.string(), shard.name,
                                 to_string(stored.shape), to_string(shard.global_shape)));
  if (!shard.local.defined() || shard.local.count() == 0) return;
  if (stored.dtype != shard.local.dtype())
    throw InputError(fmt::format("{}: tensor '{}' is {}, {} is needed", folder_.string(), shard.name,
                                 name_of(stored.dtype), name_of(shard.local.dtype())));
  const RowSource source{shard.name, stored.dtype, stored.shape,
                         [&](int64_t begin, int64_t count) { return read_rows(shard.name, begin, count); }};
  int64_t next = 0;
  for_each_piece(source, shard.row_offset, shard.row_offset + shard.local.size(0), [&](const Tensor& piece) {
    Tensor place = shard.local.rows(next, piece.size(0));
    copy(piece, place);
    next += piece.size(0);
  });
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
