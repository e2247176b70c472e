#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/naming.h"

// Names on disk. A folder of checkpoints holds
//   step-50/                             a complete checkpoint: checkpoint.json and the files that it lists
//   latest                               the name of the newest one, replaced last
//   .step-60.generation-2.ab12-1.tmp/    one being written, or left by a crash: nobody reads it
//   .generation, .lock                   who may commit (fence.h)
// or, where they have a name, what naming.h says.
namespace trainyard::checkpoint {

struct StepFolder {
  int64_t step = 0;
  std::filesystem::path path;
};

/// The checkpoints of one naming in `folder`, newest first. Where both spellings of a step exist, only "step-50".
std::vector<StepFolder> step_folders(const std::filesystem::path& folder, const Naming& naming = {});
/// They stand in the order in which a resuming run tries them: what the pointer names, the steps before it, and only
/// then those past it, which a run that went back has left behind. Without a readable pointer the newest comes first.
std::vector<StepFolder> candidates(const std::filesystem::path& folder, const Naming& naming = {});
/// What the pointer names; none where it is absent or names no checkpoint.
std::optional<StepFolder> latest(const std::filesystem::path& folder, const Naming& naming = {});

/// The name in the pointer of a checkpoint that is not there; "" where it is, or nothing is named.
std::string lost_latest(const std::filesystem::path& folder, const Naming& naming = {});

/// `path`, or where it is a step folder that is absent, the other spelling of it that is there; where it is a pointer,
/// what that names.
std::filesystem::path as_spelled(const std::filesystem::path& path);
/// The checkpoint that `given` is, in either spelling, or the one that resuming from the folder `given` would try
/// first. Throws InputError.
std::filesystem::path locate(const std::filesystem::path& given);

/// True for names that only an unfinished or removed checkpoint has.
bool is_temporary(std::string_view name);

/// "shard-00001-model-00001-of-00001.safetensors": the layout of PyTorch's distributed checkpoints, rank counted
/// from 1.
std::string shard_file_name(std::string_view kind, int rank);

}  // namespace trainyard::checkpoint
