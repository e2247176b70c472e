#include "data/saved_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/lowercase.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *kDictionary = "dataset_dict.json", *kState = "state.json";

json object_of(const fs::path& file) {
  json object = json::parse(read_file(file), nullptr, false);
  if (!object.is_object())
    throw InputError(fmt::format("{}: is no JSON object; save the data set again", file.string()));
  return object;
}

std::vector<std::string> splits_of(const fs::path& folder) {
  const json object = object_of(folder / kDictionary);
  std::vector<std::string> splits;
  const auto named = object.find("splits");
  if (named == object.end() || !named->is_array())
    throw InputError(fmt::format("{}: has no list 'splits'; save the data set again", (folder / kDictionary).string()));
  for (const json& split : *named)
    if (split.is_string()) splits.push_back(split.get<std::string>());
  return splits;
}

std::vector<fs::path> files_of_state(const fs::path& folder) {
  const fs::path description = folder / kState;
  const json state = object_of(description);
  if (const auto indices = state.find("_indices_data_files"); indices != state.end() && !indices->empty())
    throw InputError(
        fmt::format("{}: the data set has an order of its rows beside them; load it in Python and save it again, "
                    "which writes the rows in that order",
                    description.string()));
  std::vector<fs::path> files;
  const auto listed = state.find("_data_files");
  if (listed == state.end() || !listed->is_array())
    throw InputError(fmt::format("{}: has no list '_data_files'; save the data set again", description.string()));
  for (const json& file : *listed) {
    const auto name = file.is_object() ? file.find("filename") : file.end();
    if (!file.is_object() || name == file.end() || !name->is_string())
      throw InputError(fmt::format("{}: an entry of '_data_files' has no 'filename'; save the data set again",
                                   description.string()));
    files.push_back(folder / name->get<std::string>());
    if (!fs::is_regular_file(files.back()))
      throw InputError(fmt::format("{}: names {}, which is not there; save or copy the data set again",
                                   description.string(), name->get<std::string>()));
  }
  return files;
}

/// The split that a part of a name tells, as Hugging Face's names of files do; "" where it tells none.
std::string split_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, const char*>, 8> kSplits{{{"train", "train"},
                                                                             {"training", "train"},
                                                                             {"test", "test"},
                                                                             {"testing", "test"},
                                                                             {"validation", "validation"},
                                                                             {"valid", "validation"},
                                                                             {"val", "validation"},
                                                                             {"dev", "validation"}}};
  for (const auto& [name, split] : kSplits)
    if (word == name) return split;
  return "";
}

std::string split_of(const fs::path& name) {
  const std::string text = lowercase(name.string());
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of("-_./ ", begin), text.size());
    if (std::string split = split_of(std::string_view(text).substr(begin, end - begin)); !split.empty()) return split;
    begin = end + 1;
  }
  return "";
}

}  // namespace

std::optional<std::vector<fs::path>> saved_dataset_files(const fs::path& folder) {
  if (fs::exists(folder / kDictionary)) {
    const auto splits = splits_of(folder);
    if (splits.size() != 1)
      throw InputError(fmt::format("{}: holds the splits {}; give one of them, such as {}", folder.string(),
                                   fmt::join(splits, ", "), (folder / "train").string()));
    return files_of_state(folder / splits.front());
  }
  if (!fs::exists(folder / kState) || !object_of(folder / kState).contains("_data_files")) return std::nullopt;
  return files_of_state(folder);
}

void require_one_split(const std::vector<fs::path>& files, const fs::path& folder) {
  std::set<std::string> splits;
  for (const fs::path& file : files)
    if (const std::string split = split_of(file.lexically_relative(folder)); !split.empty()) splits.insert(split);
  if (splits.size() > 1)
    throw InputError(fmt::format(
        "{}: by the names of the files below it, this folder holds the splits {}; give the folder of one of "
        "them, or a pattern such as '{}'",
        folder.string(), fmt::join(splits, ", "), (folder / "*train*").string()));
}

}  // namespace trainyard::data
