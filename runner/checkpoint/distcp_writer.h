#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "checkpoint/rank_files.h"

namespace trainyard::checkpoint {

/// Writes the folder that torch.distributed.checkpoint.save() of these tensors would write on `world` ranks, each with
/// its rows as torch.chunk deals them: `__<rank>_0.distcp` and `.metadata`. torch.distributed.checkpoint.load() reads
/// it, and so do dcp_to_torch_save() and distcp.h. The bytes of all files. Throws as torch_writer.h does.
uint64_t write_distcp_files(const std::filesystem::path& folder, int world, std::span<const RowSource> tensors);

}  // namespace trainyard::checkpoint
