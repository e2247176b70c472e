#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "decide/plan.h"
#include "local/manifest/input.h"

namespace trainyard::local {

struct RunOptions {
  std::vector<std::string> files;      ///< `-`: standard input
  std::filesystem::path folder;        ///< empty: trainyard-run/<job> below where it was started
  std::vector<std::string> arguments;  ///< added to those of each replica's container `pytorch`
  decide::Settings decisions;
};

/// Runs the jobs of the files on this machine, at the same time, until all have ended. Returns the program's exit code:
/// 0 where all succeeded, else that of the first job, in the files' order, that has not; 130 or 143 after a signal.
/// Throws Refusal where something is not to be done here; nothing runs any more then.
[[nodiscard]] int run(const RunOptions& options);

}  // namespace trainyard::local
