#pragma once

#include <string>
#include <vector>

#include "hub/data_files.h"
#include "hub/name.h"
#include "hub/settings.h"

namespace trainyard::cli {

/// The split of a data set of the hub, as it lies in the cache.
struct DataSplit {
  std::string path;  ///< a file, or a pattern of files
  std::string commit;
};

/// Fetches the split `split` of the configuration `config` ("": the one that the data set prefers, or has), as its
/// README.md lists them, else by the names of its files. Throws as hub::fetch does, and InputError for a configuration
/// or a split that is not there, or that no single path stands for.
DataSplit fetch_split(hub::Name name, const std::string& config, const std::string& split,
                      const hub::Settings& settings);

/// The configurations in the YAML at the top of a README.md; none where it lists none. Throws InputError, naming
/// `where`, where it is not as the hub's documentation has it, or says what is not read here (data_dir).
std::vector<hub::DataConfiguration> configurations_in(const std::string& readme, const std::string& where);

}  // namespace trainyard::cli
