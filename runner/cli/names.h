#pragma once

#include "cli/command.h"
#include "config/load.h"

namespace trainyard::cli {

/// What a configuration's names of the hub and of S3 are needed for.
enum class NamesFor {
  Run,   ///< weights, tokenizers and data
  Plan,  ///< config.json alone
};

/// A configuration, and what its names of the hub and of S3 stand for now.
struct WithoutNames {
  config::Loaded loaded;  ///< with paths of the cache in place of names; `understood` tells of each its name and commit
  config::Config agreed;  ///< with names at their commits: equal on all ranks, wherever their caches are
  Arguments pins;         ///< flags which make each rank that is started with them take the same commits
};

}  // namespace trainyard::cli
