#include "checkpoint/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trainyard::checkpoint {
namespace fs = std::filesystem;

std::optional<int64_t> step_of(std::string_view folder_name) {
  if (!folder_name.starts_with("step-") && !folder_name.starts_with("step_")) return std::nullopt;
  const auto step = parse_int(folder_name.substr(5));
  return step && *step >= 0 ? step : std::nullopt;
}

std::string step_folder_name(int64_t step) {
  return fmt::format("step-{}", step);
}

std::vector<StepFolder> step_folders(const fs::path& folder) {
  std::vector<StepFolder> found;
  std::error_code absent;  // no folder: no checkpoints
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    const auto step = step_of(entry.path().filename().string());
    std::error_code vanished;
    if (step && entry.is_directory(vanished)) found.push_back({*step, entry.path()});
  }
  // '-' comes before '_', so the first of two spellings is ours.
  std::ranges::sort(found, [](const StepFolder& a, const StepFolder& b) {
    return a.step != b.step ? a.step > b.step : a.path < b.path;
  });
  const auto twice = std::ranges::unique(found, {}, &StepFolder::step);
  found.erase(twice.begin(), twice.end());
  return found;
}

std::vector<StepFolder> candidates(const fs::path& folder) {
  std::vector<StepFolder> ordered = step_folders(folder);
  const auto newest = latest(folder);
  if (!newest) return ordered;
  std::ranges::stable_partition(ordered, [&](const StepFolder& each) { return each.step <= newest->step; });
  const auto named = std::ranges::find(ordered, newest->step, &StepFolder::step);
  if (named != ordered.end()) named->path = newest->path;
  return ordered;
}

std::optional<StepFolder> latest(const fs::path& folder) {
  const fs::path pointer = folder / kLatestName;
  std::error_code ignored;
  if (!fs::is_regular_file(pointer, ignored)) return std::nullopt;
  const std::string content = read_file(pointer, 4096);
  const std::string name(trim(content));
  const auto step = step_of(name);  // also refuses anything with a '/' in it
  if (!step || !fs::is_directory(folder / name, ignored)) return std::nullopt;
  return StepFolder{*step, folder / name};
}

fs::path as_spelled(const fs::path& path) {
  const fs::path bare = path.filename().empty() ? path.parent_path() : path;  // "step_50/"
  const auto step = step_of(bare.filename().string());
  if (!step || fs::exists(path)) return path;
  for (const char* const separator : {"-", "_"})
    if (const fs::path other = bare.parent_path() / fmt::format("step{}{}", separator, *step); fs::is_directory(other))
      return other;
  return path;
}

fs::path locate(const fs::path& given) {
  const fs::path path = as_spelled(given);
  if (!fs::is_directory(path)) throw InputError(fmt::format("{}: no such folder of a checkpoint", path.string()));
  if (fs::exists(path / kManifestName)) return path;
  const std::vector<StepFolder> found = candidates(path);
  if (found.empty())
    throw InputError(
        fmt::format("{}: holds no checkpoint, neither {} nor step-N folders", path.string(), kManifestName));
  return found[0].path;
}

bool is_temporary(std::string_view name) {
  return name.starts_with('.') && name.ends_with(".tmp");
}

std::string shard_file_name(std::string_view kind, int rank) {
  return fmt::format("shard-{:05}-{}-00001-of-00001.safetensors", rank + 1, kind);
}

}  // namespace trainyard::checkpoint
