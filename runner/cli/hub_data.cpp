#include "cli/hub_data.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "config/yaml_document.h"
#include "hub/fetch.h"

namespace trainyard::cli {
namespace {

constexpr const char* kCard = "README.md";
constexpr size_t kMostCardBytes = size_t{16} << 20;

/// What stands between the first line, which is "---", and the next such line; "" where there is none.
std::string front_matter(const std::string& readme) {
  const std::string text = replaced(readme, "\r\n", "\n");
  if (!text.starts_with("---\n")) return "";
  const size_t end = text.find("\n---", 3);
  return end == std::string::npos ? "" : text.substr(4, end - 3);
}

InputError unreadable(const std::string& where, const char* what) {
  return InputError(
      fmt::format("{}: configs: {}; trainyard download --repo_type dataset fetches the files, which data.path "
                  "can name then",
                  where, what));
}

/// A path or a list of them.
std::vector<std::string> patterns_in(const YAML::Node& node, const std::string& where) {
  if (node.IsScalar()) return {node.Scalar()};
  std::vector<std::string> patterns;
  if (!node.IsSequence()) throw unreadable(where, "a path is neither a text nor a list of texts");
  for (const YAML::Node& each : node) {
    if (!each.IsScalar()) throw unreadable(where, "a path is neither a text nor a list of texts");
    patterns.push_back(each.Scalar());
  }
  return patterns;
}

/// `data_files` is a pattern, a list of them, a mapping from splits to patterns, or a list of {split, path}.
std::map<std::string, std::vector<std::string>> splits_in(const YAML::Node& files, const std::string& where) {
  std::map<std::string, std::vector<std::string>> splits;
  if (files.IsMap()) {
    for (const auto& split : files) splits[split.first.Scalar()] = patterns_in(split.second, where);
  } else if (files.IsSequence() && files.size() > 0 && files[0].IsMap()) {
    for (const YAML::Node& each : files) {
      if (!each.IsMap() || !each["split"] || !each["path"] || !each["split"].IsScalar())
        throw unreadable(where, "an entry of data_files has no split or no path");
      splits[each["split"].Scalar()] = patterns_in(each["path"], where);
    }
  } else {
    splits["train"] = patterns_in(files, where);
  }
  return splits;
}

hub::DataConfiguration configuration_in(const YAML::Node& node, const std::string& where) {
  if (!node.IsMap() || !node["config_name"] || !node["config_name"].IsScalar())
    throw unreadable(where, "an entry has no config_name");
  if (node["data_dir"] || !node["data_files"]) throw unreadable(where, "an entry without data_files is not read here");
  return {.name = node["config_name"].Scalar(),
          .is_default = node["default"] && node["default"].IsScalar() && node["default"].Scalar() == "true",
          .patterns = splits_in(node["data_files"], where)};
}

/// README.md at the revision, if there is one, and the commit that it is.
hub::Fetched fetch_card(const hub::Name& name, const hub::Settings& settings) {
  const auto card = [](const hub::FileNames& there) {
    return std::ranges::find(there, kCard) == there.end() ? hub::FileNames{} : hub::FileNames{kCard};
  };
  return hub::fetch(name, {.chosen = card, .lacking = [](const hub::FileNames&) { return std::string(); }}, settings);
}

}  // namespace

std::vector<hub::DataConfiguration> configurations_in(const std::string& readme, const std::string& where) {
  const std::string text = front_matter(readme);
  if (text.empty()) return {};
  const YAML::Node card = config::parse_yaml({where, text});
  if (!card.IsMap() || !card["configs"]) return {};
  if (!card["configs"].IsSequence()) throw unreadable(where, "it is no list");
  std::vector<hub::DataConfiguration> configurations;
  for (const YAML::Node& each : card["configs"]) configurations.push_back(configuration_in(each, where));
  return configurations;
}

DataSplit fetch_split(hub::Name name, const std::string& config, const std::string& split,
                      const hub::Settings& settings) {
  const hub::Fetched card = fetch_card(name, settings);
  name.revision = card.commit;
  hub::DataAsked asked{.config = config, .split = split, .listed = {}};
  if (const auto file = card.folder / kCard; std::filesystem::exists(file))
    asked.listed = configurations_in(read_file(file, kMostCardBytes), file.string());
  std::string path;
  const auto lacking = [&](const hub::FileNames& there) {  // asked of all that the repository has, if that is known
    const hub::FileNames files = hub::data_files(asked, there);
    if (std::string missing = hub::lacking_data(asked, files); !missing.empty()) return missing;
    const auto whole = hub::path_of_all(files, there);
    if (!whole)
      throw InputError(
          fmt::format("{}: the files of the split '{}' lie so that no single pattern names them and no others; "
                      "trainyard download --repo_type dataset fetches them",
                      hub::to_string(name), split));
    path = *whole;
    return std::string();
  };
  const auto chosen = [&](const hub::FileNames& there) { return hub::data_files(asked, there); };
  const hub::Fetched data = hub::fetch(name, {.chosen = chosen, .lacking = lacking}, settings);
  return {.path = (data.folder / path).string(), .commit = data.commit};
}

}  // namespace trainyard::cli
