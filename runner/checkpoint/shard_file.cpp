#include "checkpoint/shard_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "base/error.h"
#include "checkpoint/checksum.h"
#include "checkpoint/layout.h"
#include "tensor/chunk.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {
namespace {

using nlohmann::json;

constexpr const char* kShardingInfo = "DCP_SHARDING_INFO";
constexpr const char* kSavedOffsets = "saved_offsets";

int64_t rows_of(const Shard& shard) {
  return shard.local.defined() ? shard.local.size(0) : 0;
}

bool columns_fit(const Shard& shard) {
  const Shape &local = shard.local.shape(), &global = shard.global_shape;
  if (std::equal(local.begin() + 1, local.end(), global.begin() + 1, global.end())) return shard.column_offset == 0;
  return local.size() == 2 && global.size() == 2 && shard.column_offset >= 0 &&
         shard.column_offset + local[1] <= global[1];
}

void check(const Shard& shard) {
  const bool fits = !shard.global_shape.empty() && shard.row_offset >= 0 &&
                    shard.row_offset + rows_of(shard) <= shard.global_shape[0] &&
                    (!shard.local.defined() || columns_fit(shard));
  if (!fits)
    throw std::invalid_argument(fmt::format(
        "checkpoint: '{}': {} from row {} and column {} on does not fit the global shape {}", shard.name,
        to_string(shard.local.shape()), shard.row_offset, shard.column_offset, to_string(shard.global_shape)));
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

/// The row and the column at which each tensor of a file begins in its whole; empty for a file of whole tensors.
std::unordered_map<std::string, std::vector<int64_t>> offsets_of(const SafetensorsFile& file) {
  std::unordered_map<std::string, std::vector<int64_t>> offsets;
  const auto found = file.metadata().find(kShardingInfo);
  if (found == file.metadata().end()) return offsets;
  const json sharding = json::parse(found->second);
  for (const auto& [name, info] : sharding.items()) offsets[name] = info.at(kSavedOffsets).get<std::vector<int64_t>>();
  return offsets;
}

void add_rows(std::unordered_map<std::string, StoredTensor>& tensors, const SafetensorsFile& file, size_t index) {
  const auto offsets = offsets_of(file);
  for (const SafetensorsEntry& entry : file.entries()) {
    const auto found = tensors.find(entry.name);
    if (found == tensors.end()) continue;  // of the other kind
    found->second.dtype = entry.dtype().value();
    StoredRows rows{.file = index, .rows = entry.shape.at(0)};
    if (const auto offset = offsets.find(entry.name); offset != offsets.end()) {
      rows.row_offset = offset->second.at(0);
      if (entry.shape.size() == 2 && entry.shape[1] < found->second.shape.at(1))
        rows.column_offset = offset->second.at(1), rows.columns = entry.shape[1];
    }
    found->second.shards.push_back(rows);
  }
}

/// Parts of rows: no two overlap, and where `everything` is there, they are as many elements as the tensor.
void check_parts(const StoredTensor& tensor, bool everything) {
  const auto columns_of = [&](const StoredRows& part) {
    return part.columns == StoredRows::kAllColumns ? Rows{0, tensor.shape[1]} : Rows{part.column_offset, part.columns};
  };
  const auto overlap = [](int64_t begin, int64_t count, int64_t other, int64_t other_count) {
    return begin < other + other_count && other < begin + count;
  };
  int64_t elements = 0;
  for (auto part = tensor.shards.begin(); part != tensor.shards.end(); ++part) {
    const Rows columns = columns_of(*part);
    elements += part->rows * columns.count;
    for (auto next = part + 1; next != tensor.shards.end() && next->row_offset < part->row_offset + part->rows; ++next)
      if (const Rows other = columns_of(*next); overlap(columns.begin, columns.count, other.begin, other.count))
        throw InputError(fmt::format("tensor '{}': row {} was written twice from column {} on", tensor.name,
                                     next->row_offset, std::max(columns.begin, other.begin)));
  }
  if (everything && elements != count_of(tensor.shape))
    throw InputError(fmt::format("tensor '{}': {} of its {} elements were not written", tensor.name,
                                 count_of(tensor.shape) - elements, count_of(tensor.shape)));
}

void check_rows(StoredTensor& tensor, bool everything) {
  std::ranges::sort(tensor.shards, {},
                    [](const StoredRows& rows) { return std::pair(rows.row_offset, rows.column_offset); });
  const auto is_part = [](const StoredRows& rows) { return rows.columns != StoredRows::kAllColumns; };
  if (std::ranges::any_of(tensor.shards, is_part)) return check_parts(tensor, everything);
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
    if (saved.size() > 1) saved[1] = shard.column_offset;
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
