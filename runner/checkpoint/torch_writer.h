#pragma once

#include <filesystem>
#include <span>

#include "checkpoint/rank_files.h"

namespace trainyard::checkpoint {

/// Writes the file that torch.save would write of a dictionary of these tensors: torch.load(path, weights_only=True)
/// reads it, and so does torch_file.h. A piece of one tensor in memory at a time.
/// Throws std::filesystem::filesystem_error with the system's reason; std::invalid_argument for a type that is no
/// floating point.
void write_torch_file(const std::filesystem::path& path, std::span<const RowSource> tensors);

}  // namespace trainyard::checkpoint
