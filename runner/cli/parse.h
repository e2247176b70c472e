#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "cli/command.h"

namespace trainyard::cli {

/// Reads the arguments into `app`'s options. Returns an exit code where --help was asked for and printed, so that there
/// is nothing more to do. Throws InputError for arguments that do not fit.
std::optional<int> parse(CLI::App& app, const Arguments& arguments);

}  // namespace trainyard::cli
