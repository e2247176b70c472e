#include "checkpoint/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trainyard::checkpoint {
namespace fs = std::filesystem;

namespace {

/// The folder whose name stands in a pointer, whether it is there or not.
std::optional<fs::path> named_by(const fs::path& pointer) {
  std::error_code ignored;
  if (!fs::is_regular_file(pointer, ignored)) return std::nullopt;
  const std::string content = read_file(pointer, 4096);
  const std::string name(trim(content));
  if (name.empty() || name.find('/') != std::string::npos) return std::nullopt;
  return pointer.parent_path() / name;
}

std::optional<fs::path> pointed_to_by(const fs::path& pointer) {
  std::error_code ignored;
  auto named = named_by(pointer);
  return named && fs::is_directory(*named, ignored) ? named : std::nullopt;
}

bool is_pointer_name(const std::string& name) {
  return name == Naming().pointer() || name.ends_with("-" + Naming().pointer());
}

}  // namespace

std::vector<StepFolder> step_folders(const fs::path& folder, const Naming& naming) {
  std::vector<StepFolder> found;
  std::error_code absent;  // no folder: no checkpoints
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    std::error_code vanished;
    if (!naming.has(entry.path().filename().string()) || !entry.is_directory(vanished)) continue;
    if (const auto step = naming.step_of(entry.path())) found.push_back({*step, entry.path()});
  }
  // '-' comes before '_', so the first of two spellings is ours.
  std::ranges::sort(found, [](const StepFolder& a, const StepFolder& b) {
    return a.step != b.step ? a.step > b.step : a.path < b.path;
  });
  const auto twice = std::ranges::unique(found, {}, &StepFolder::step);
  found.erase(twice.begin(), twice.end());
  return found;
}

std::vector<StepFolder> candidates(const fs::path& folder, const Naming& naming) {
  std::vector<StepFolder> ordered = step_folders(folder, naming);
  const auto newest = latest(folder, naming);
  if (!newest) return ordered;
  std::ranges::stable_partition(ordered, [&](const StepFolder& each) { return each.step <= newest->step; });
  const auto named = std::ranges::find(ordered, newest->step, &StepFolder::step);
  if (named != ordered.end()) named->path = newest->path;
  return ordered;
}

std::optional<StepFolder> latest(const fs::path& folder, const Naming& naming) {
  const auto named = pointed_to_by(folder / naming.pointer());
  const auto step = named ? naming.step_of(*named) : std::nullopt;
  if (!step) return std::nullopt;
  return StepFolder{*step, *named};
}

std::string lost_latest(const fs::path& folder, const Naming& naming) {
  std::error_code ignored;
  const auto named = named_by(folder / naming.pointer());
  if (!named || !naming.step_of(*named) || fs::is_directory(as_spelled(*named), ignored)) return "";
  return named->filename().string();
}

fs::path as_spelled(const fs::path& path) {
  const fs::path bare = path.filename().empty() ? path.parent_path() : path;  // "step_50/"
  if (is_pointer_name(bare.filename().string()))
    if (const auto named = pointed_to_by(bare)) return *named;
  const auto step = Naming().step_of(bare);
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
  const std::vector<StepFolder> found = candidates(path, naming_in(path));
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
