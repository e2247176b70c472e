#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/disk.h"
#include "checkpoint/manifest.h"
#include "checkpoint/snapshot.h"

namespace trainyard::checkpoint {

/// Metadata of a file whose tensors are `shards`, in any order: {"DCP_SHARDING_INFO": {name: {"saved_offsets":
/// [row_offset, 0, …]}}} of PyTorch's distributed checkpoints, which
/// torch.distributed.checkpoint.HuggingFaceStorageReader reads.
std::map<std::string, std::string> sharding_metadata(std::span<const Shard> shards);

/// Writes what `rank` holds of `shards` as one durable file in `folder`: safetensors with
/// sharding_metadata(). Nothing to write gives no file and no entry.
/// `before_each` is called before each tensor, and may throw to end it.
/// Throws std::filesystem::filesystem_error; std::invalid_argument for a shard whose rows do not fit its global shape.
std::vector<StoredFile> write_shards(Disk& disk, const std::filesystem::path& folder, Kind kind, int rank,
                                     std::span<const Shard> shards, const std::function<void()>& before_each = {});

/// What each file of `files` in `folder` holds, put together by tensor: the tensors of `shards` in their order, found
/// by reading the headers back. `everything`: the rows must cover each tensor without gap.
/// Throws InputError naming the tensor and the rows that are missing or twice there, or the file of another size.
std::vector<StoredTensor> collect_tensors(const std::filesystem::path& folder, std::span<const StoredFile> files,
                                          Kind kind, std::span<const Shard> shards, bool everything);

}  // namespace trainyard::checkpoint
