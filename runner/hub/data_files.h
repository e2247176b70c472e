#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hub/files.h"

// Which files of a data set's repository hold a split of it. Pure.
namespace trainyard::hub {

/// A configuration as a data set's README.md lists it.
struct DataConfiguration {
  std::string name;
  bool is_default = false;
  std::map<std::string, std::vector<std::string>> patterns;  ///< of files, by split
};

/// What is asked of a data set.
struct DataAsked {
  std::string config;  ///< "": the one that it prefers, or has
  std::string split;
  std::vector<DataConfiguration> listed;  ///< empty: names of files and folders say it
};

/// Those of `there` that hold the split. A list of configurations decides; where there is none, a configuration is a
/// folder at the top, or all that lies at the top and in data/, and a split is a word of a file's name or of a folder's
/// ("data/train-00000-of-00002.parquet", "en/test.jsonl"). Files without any word for a split are all of train. Of
/// files of several kinds those of one are taken: tables, else JSON lines, else texts. Throws InputError, naming the
/// configurations, where `config` is none of them, or is needed to tell.
FileNames data_files(const DataAsked& asked, const FileNames& there);

/// What is missing for `files`, those of a split, to be all of it: of "-00000-of-00002" both. "": nothing.
std::string lacking_data(const DataAsked& asked, const FileNames& files);

/// One path of a corpus that stands for exactly `files` among `there`: the file, or a pattern of files of one folder.
/// None where there is no such path.
std::optional<std::string> path_of_all(const FileNames& files, const FileNames& there);

}  // namespace trainyard::hub
