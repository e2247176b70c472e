#include "checkpoint/shard_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "base/error.h"
#include "checkpoint/checksum.h"
#include "checkpoint/layout.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {
namespace {

using nlohmann::json;

constexpr const char* kShardingInfo = "DCP_SHARDING_INFO";
constexpr const char* kSavedOffsets = "saved_offsets";

int64_t rows_of(const Shard& shard) {
  return shard.local.defined() ? shard.local.size(0) : 0;
}

void check(const Shard& shard) {
  const bool fits = !shard.global_shape.empty() && shard.row_offset >= 0 &&
                    shard.row_offset + rows_of(shard) <= shard.global_shape[0] &&
                    (!shard.local.defined() || std::equal(shard.local.shape().begin() + 1, shard.local.shape().end(),
                                                          shard.global_shape.begin() + 1, shard.global_shape.end()));
  if (!fits)
    throw std::invalid_argument(fmt::format("checkpoint: '{}': {} from row {} on does not fit the global shape {}",
                                            shard.name, to_string(shard.local.shape()), shard.row_offset,
                                            to_string(shard.global_shape)));
}

StoredFile write_file_of(Disk& disk, const std::filesystem::path& path, std::span<const Shard* const> shards,
                         const std::function<void()>& before_each) {
  std::vector<SafetensorsWriter::Declared> declared;
  std::vector<Shard> placed;
  for (const Shard* shard : shards) {
    declared.push_back({shard->name, shard->local.dtype(), shard->local.shape()});
    placed.push_back(*shard);
  }
  ChecksumSink::Seen seen;
  SafetensorsWriter writer(std::make_unique<ChecksumSink>(disk.create(path), seen), declared,
                           sharding_metadata(placed));
  for (const Shard* shard : shards) {
    if (before_each) before_each();
    writer.append(shard->local);
  }
  writer.finish();
  return {path.filename().string(), seen.bytes, seen.checksum.text()};
}

/// The row at which each tensor of a file begins in its whole; empty for a file of whole tensors.
std::unordered_map<std::string, int64_t> row_offsets_of(const SafetensorsFile& file) {
  std::unordered_map<std::string, int64_t> offsets;
  const auto found = file.metadata().find(kShardingInfo);
  if (found == file.metadata().end()) return offsets;
  const json sharding = json::parse(found->second);
  for (const auto& [name, info] : sharding.items()) offsets[name] = info.at(kSavedOffsets).at(0);
  return offsets;
}

void add_rows(std::unordered_map<std::string, StoredTensor>& tensors, const SafetensorsFile& file, size_t index) {
  const auto offsets = row_offsets_of(file);
  for (const SafetensorsEntry& entry : file.entries()) {
    const auto found = tensors.find(entry.name);
    if (found == tensors.end()) continue;  // of the other kind
    found->second.dtype = entry.dtype().value();
    const auto offset = offsets.find(entry.name);
    found->second.shards.push_back({index, offset == offsets.end() ? 0 : offset->second, entry.shape.at(0)});
  }
}

void check_rows(StoredTensor& tensor, bool everything) {
  std::ranges::sort(tensor.shards, {}, &StoredRows::row_offset);
  int64_t covered = 0;
  for (const StoredRows& rows : tensor.shards) {
    if (rows.row_offset < covered)
      throw InputError(
          fmt::format("tensor '{}': rows {} to {} were written twice", tensor.name, rows.row_offset, covered - 1));
    if (everything && rows.row_offset > covered)
      throw InputError(
          fmt::format("tensor '{}': rows {} to {} were not written", tensor.name, covered, rows.row_offset - 1));
    covered = rows.row_offset + rows.rows;
  }
  if (everything && covered != tensor.shape[0] && count_of(tensor.shape) != 0)
    throw InputError(
        fmt::format("tensor '{}': rows {} to {} were not written", tensor.name, covered, tensor.shape[0] - 1));
}

}  // namespace

std::map<std::string, std::string> sharding_metadata(std::span<const Shard> shards) {
  json offsets = json::object();
  for (const Shard& shard : shards) {
    std::vector<int64_t> saved(shard.global_shape.size(), 0);
    saved[0] = shard.row_offset;
    offsets[shard.name] = {{kSavedOffsets, saved}};
  }
  return {{kShardingInfo, offsets.dump()}, {"DCP_VERSION", "1.0"}, {"format", "pt"}};
}

std::vector<StoredFile> write_shards(Disk& disk, const std::filesystem::path& folder, Kind kind, int rank,
                                     std::span<const Shard> shards, const std::function<void()>& before_each) {
  std::vector<const Shard*> written;
  for (const Shard& shard : shards) {
    check(shard);
    if (shard.local.defined() && shard.local.count() > 0) written.push_back(&shard);
  }
  if (written.empty()) return {};
  const auto path = folder / shard_file_name(kind == Kind::Model ? "model" : "optim", rank);
  return {write_file_of(disk, path, written, before_each)};
}

std::vector<StoredTensor> collect_tensors(const std::filesystem::path& folder, std::span<const StoredFile> files,
                                          Kind kind, std::span<const Shard> shards, bool everything) {
  std::unordered_map<std::string, StoredTensor> by_name;
  for (const Shard& shard : shards) {
    const StoredTensor tensor{shard.name, kind, shard.local.dtype(), shard.global_shape, {}};
    if (!by_name.emplace(shard.name, tensor).second)
      throw std::invalid_argument(fmt::format("checkpoint: '{}' stands twice", shard.name));
  }
  for (size_t index = 0; index < files.size(); ++index) {
    const FileSource as_seen_here(folder / files[index].name);
    if (as_seen_here.size() != files[index].bytes)
      throw InputError(fmt::format("{}: {} bytes where its writer counted {}", as_seen_here.path().string(),
                                   as_seen_here.size(), files[index].bytes));
    if (as_seen_here.path().extension() == ".safetensors")
      add_rows(by_name, SafetensorsFile(as_seen_here.path()), index);
  }
  std::vector<StoredTensor> tensors;
  for (const Shard& shard : shards) {
    StoredTensor& tensor = by_name.at(shard.name);
    check_rows(tensor, everything);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace trainyard::checkpoint
