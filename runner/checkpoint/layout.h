#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Names on disk. A folder of checkpoints holds
//   step-50/                             a complete checkpoint: checkpoint.json and the files that it lists
//   latest                               the name of the newest one, replaced last
//   .step-60.generation-2.ab12-1.tmp/    one being written, or left by a crash: nobody reads it
//   .generation, .lock                   who may commit (fence.h)
namespace trainyard::checkpoint {

constexpr std::string_view kManifestName = "checkpoint.json";
constexpr std::string_view kLatestName = "latest";

struct StepFolder {
  int64_t step = 0;
  std::filesystem::path path;
};

/// The step of "step-50" or "step_50"; none for any other name.
std::optional<int64_t> step_of(std::string_view folder_name);
std::string step_folder_name(int64_t step);

/// The step folders of `folder`, newest first. Where both spellings of a step exist, only "step-50".
std::vector<StepFolder> step_folders(const std::filesystem::path& folder);
/// In the order in which a resuming run tries them: what `latest` names, the steps before it, and only then those past
/// it, which a run that went back has left behind. Without a readable `latest`, newest first.
std::vector<StepFolder> candidates(const std::filesystem::path& folder);
/// What `latest` names; none where it is absent or names no step folder.
std::optional<StepFolder> latest(const std::filesystem::path& folder);

/// `path`, or where it is a step folder that is absent, the other spelling of it that is there.
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
