#include "hub/data_files.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/lowercase.h"
#include "base/text.h"

namespace trainyard::hub {
namespace {

/// Endings of one kind: the kinds in the order in which they are preferred.
constexpr std::array<std::string_view, 2> kTables{".parquet", ".arrow"};
constexpr std::array<std::string_view, 6> kLines{".jsonl", ".jsonl.gz", ".jsonl.zst", ".json.gz", ".json.zst", ".json"};
constexpr std::array<std::string_view, 1> kTexts{".txt"};
constexpr std::array<std::span<const std::string_view>, 3> kKinds{kTables, kLines, kTexts};

/// Files of a repository that tell of it, and hold no data.
constexpr std::array<std::string_view, 4> kAboutIt{"dataset_infos.json", "dataset_info.json", "state.json",
                                                   "requirements.txt"};

const std::map<std::string, std::vector<std::string>>& words_of_splits() {
  static const std::map<std::string, std::vector<std::string>> kWords{
      {"train", {"train", "training"}},
      {"validation", {"validation", "valid", "val", "dev"}},
      {"test", {"test", "testing", "eval", "evaluation"}}};
  return kWords;
}

bool ends_as(std::span<const std::string_view> kind, const std::string& file) {
  const std::string name = lowercase(file);
  return std::ranges::any_of(kind, [&](std::string_view ending) { return name.ends_with(ending); });
}

std::string last_part(const std::string& file) {
  return file.substr(file.rfind('/') + 1);  // npos + 1 is 0
}

bool is_data(const std::string& file) {
  const std::string name = last_part(file);
  return name[0] != '.' && std::ranges::find(kAboutIt, name) == kAboutIt.end() &&
         std::ranges::any_of(kKinds, [&](auto kind) { return ends_as(kind, name); });
}

template <typename Fits>
FileNames those(const FileNames& files, const Fits& fit) {
  FileNames taken;
  std::ranges::copy_if(files, std::back_inserter(taken), fit);
  return taken;
}

/// Those of the first kind of which there are any.
FileNames of_one_kind(const FileNames& files) {
  for (const auto kind : kKinds)
    if (FileNames taken = those(files, [&](const std::string& file) { return ends_as(kind, file); }); !taken.empty())
      return taken;
  return {};
}

[[noreturn]] void refuse_configuration(const DataAsked& asked, std::vector<std::string> names) {
  if (asked.config.empty())
    throw InputError(fmt::format("the data set has several configurations; name one in data.config: {}",
                                 shortened(std::move(names))));
  throw InputError(fmt::format("the data set has no configuration '{}' (data.config); it has {}", asked.config,
                               names.empty() ? "none that has a name" : shortened(std::move(names))));
}

const DataConfiguration& chosen_of(const DataAsked& asked) {
  std::vector<std::string> names;
  const DataConfiguration* preferred = asked.listed.size() == 1 ? &asked.listed.front() : nullptr;
  for (const DataConfiguration& each : asked.listed) {
    if (!asked.config.empty() && each.name == asked.config) return each;
    if (each.is_default || (!preferred && each.name == "default")) preferred = &each;
    names.push_back(each.name);
  }
  if (!asked.config.empty() || !preferred) refuse_configuration(asked, names);
  return *preferred;
}

FileNames listed_files(const DataAsked& asked, const FileNames& there) {
  const auto& patterns = chosen_of(asked).patterns;
  const auto of_split = patterns.find(asked.split);
  if (of_split == patterns.end()) return {};
  return those(there, [&](const std::string& file) {
    return is_data(file) && std::ranges::any_of(of_split->second, [&](const std::string& pattern) {
             const int flags = pattern.find("**") == std::string::npos ? FNM_PATHNAME : 0;
             return ::fnmatch(pattern.c_str(), file.c_str(), flags) == 0;
           });
  });
}

std::string top_folder(const std::string& file) {
  const size_t slash = file.find('/');
  return slash == std::string::npos ? "" : file.substr(0, slash);
}

/// The words of a name, in small letters: "data", "train", "00000", "of", "00002", "parquet".
std::vector<std::string> words_in(const std::string& file) {
  std::vector<std::string> words(1);
  for (const char c : lowercase(file)) {
    if (std::string_view("/-_. ").find(c) == std::string_view::npos)
      words.back() += c;
    else
      words.emplace_back();
  }
  return words;
}

/// Whether a file's name, below the folder of its configuration, has a word for the split.
bool says(const std::string& file, const std::string& split) {
  const auto known = words_of_splits().find(split);
  const std::vector<std::string> wanted =
      known == words_of_splits().end() ? std::vector<std::string>{lowercase(split)} : known->second;
  return std::ranges::any_of(words_in(file),
                             [&](const std::string& word) { return std::ranges::find(wanted, word) != wanted.end(); });
}

/// Whether a folder at the top names a split, and no configuration.
bool is_plain(const std::string& folder) {
  return folder.empty() || folder == "data" ||
         std::ranges::any_of(words_of_splits(), [&](const auto& split) { return says(folder, split.first); });
}

FileNames of_configuration(const DataAsked& asked, const FileNames& data) {
  std::set<std::string> names;
  for (const std::string& file : data)
    if (!is_plain(top_folder(file))) names.insert(top_folder(file));
  const auto lies_in = [&](const std::string& folder) {
    return those(data, [&](const std::string& file) { return top_folder(file) == folder; });
  };
  const std::vector<std::string> all(names.begin(), names.end());
  if (!asked.config.empty()) {
    if (!names.contains(asked.config)) refuse_configuration(asked, all);
    return lies_in(asked.config);
  }
  if (FileNames plain = those(data, [](const std::string& file) { return is_plain(top_folder(file)); }); !plain.empty())
    return plain;
  if (names.size() > 1) refuse_configuration(asked, all);
  return names.empty() ? FileNames{} : lies_in(*names.begin());
}

FileNames named_files(const DataAsked& asked, const FileNames& there) {
  const FileNames data = of_configuration(asked, those(there, is_data));
  const auto below = [](const std::string& file) {
    return is_plain(top_folder(file)) ? file : file.substr(file.find('/') + 1);
  };
  const FileNames taken = those(data, [&](const std::string& file) { return says(below(file), asked.split); });
  if (!taken.empty() || asked.split != "train") return taken;
  const bool has_words = std::ranges::any_of(data, [&](const std::string& file) {
    return std::ranges::any_of(words_of_splits(), [&](const auto& split) { return says(below(file), split.first); });
  });
  return has_words ? taken : data;
}

/// N of "…-00001-of-N.parquet"; 0 where the name says nothing.
size_t of_how_many(const std::string& file) {
  const std::vector<std::string> words = words_in(last_part(file));
  for (size_t i = 0; i + 2 < words.size(); ++i)
    if (words[i + 1] == "of" && parse_int(words[i])) return static_cast<size_t>(parse_int(words[i + 2]).value_or(0));
  return 0;
}

size_t common_length(const std::string& a, const std::string& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string reversed(const std::string& text) {
  return {text.rbegin(), text.rend()};
}

}  // namespace

FileNames data_files(const DataAsked& asked, const FileNames& there) {
  return of_one_kind(asked.listed.empty() ? named_files(asked, there) : listed_files(asked, there));
}

std::string lacking_data(const DataAsked& asked, const FileNames& files) {
  if (files.empty())
    return fmt::format("files of the split '{}' (data.split) that can be read: .parquet, .arrow, .jsonl, .json, .txt",
                       asked.split);
  size_t said = 0;
  for (const std::string& file : files) said = std::max(said, of_how_many(file));
  if (files.size() >= said) return "";
  return fmt::format("{} of the {} files of the split '{}'", said - files.size(), said, asked.split);
}

std::optional<std::string> path_of_all(const FileNames& files, const FileNames& there) {
  const auto has_marks = [](const std::string& file) { return file.find_first_of("*?[\\") != std::string::npos; };
  if (files.empty() || std::ranges::any_of(files, has_marks)) return std::nullopt;
  if (files.size() == 1) return files.front();
  const std::string& first = files.front();
  size_t begin = first.size(), end = first.size();
  for (const std::string& file : files) {
    begin = std::min(begin, common_length(first, file));
    end = std::min(end, common_length(reversed(first), reversed(file)));
  }
  const std::string pattern =
      first.substr(0, begin) + "*" + first.substr(first.size() - std::min(end, first.size() - begin));
  const FileNames matched = those(
      there, [&](const std::string& file) { return ::fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME) == 0; });
  return matched.size() == files.size() ? std::optional(pattern) : std::nullopt;
}

}  // namespace trainyard::hub
