#include "data/arrow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

bool is_arrow_file(const fs::path& path) {
  return path.extension() == ".arrow";
}

/// The first by its name, of `folder` or, as a DatasetDict has a folder for each split, of a folder in it.
std::optional<fs::path> arrow_file_of(const fs::path& folder) {
  std::optional<fs::path> first;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry.depth() >= 1) entry.disable_recursion_pending();
    if (is_arrow_file(entry->path()) && (!first || entry->path() < *first)) first = entry->path();
  }
  return first;
}

/// A file that `datasets` writes beside its Arrow files.
std::optional<fs::path> description_in(const fs::path& folder) {
  constexpr std::array kNames{"dataset_dict.json", "dataset_info.json", "state.json"};
  const auto found = std::ranges::find_if(kNames, [&](const char* name) { return fs::exists(folder / name); });
  return found == kNames.end() ? std::nullopt : std::optional(folder / *found);
}

/// Python that writes the data set as JSON lines. save_to_disk() leaves a state.json beside the Arrow files,
/// load_dataset() leaves none in its cache, from which load_from_disk() reads nothing.
std::string python_for(const fs::path& arrow_file) {
  const fs::path folder = arrow_file.parent_path();
  if (!fs::exists(folder / "state.json"))
    return fmt::format("from datasets import Dataset; Dataset.from_file(\"{}\").to_json(\"train.jsonl\")",
                       arrow_file.string());
  const bool is_split = fs::exists(folder.parent_path() / "dataset_dict.json");
  const fs::path whole = is_split ? folder.parent_path() : folder;
  const std::string split = !is_split                      ? ""
                            : fs::exists(whole / "train") ? "[\"train\"]"
                                                          : fmt::format("[\"{}\"]", folder.filename().string());
  return fmt::format("from datasets import load_from_disk; load_from_disk(\"{}\"){}.to_json(\"train.jsonl\")",
                     whole.empty() ? "." : whole.string(), split);
}

[[noreturn]] void refuse(const std::string& what, const fs::path& arrow_file) {
  throw InputError(
      fmt::format("{}, which is not read; give a .txt or .jsonl file. In Python: {}", what, python_for(arrow_file)));
}

}  // namespace

void refuse_arrow(const fs::path& path) {
  if (!fs::is_directory(path)) {
    if (is_arrow_file(path)) refuse(fmt::format("{}: is an Arrow file of Hugging Face datasets", path.string()), path);
    return;
  }
  const auto description = description_in(path);
  const auto arrow_file = description ? arrow_file_of(path) : std::nullopt;
  if (arrow_file)
    refuse(fmt::format("{}: is an Arrow folder of Hugging Face datasets (it has {})", path.string(),
                       description->filename().string()),
           *arrow_file);
}

}  // namespace trainyard::data
