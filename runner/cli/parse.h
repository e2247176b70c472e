#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "cli/command.h"
#include "config/config.h"

namespace trainyard::cli {

/// Throws InputError, with the nearest, where the first argument is a word but no subcommand of `app`: CLI11 would only
/// say that one is missing.
void refuse_unknown_subcommand(const CLI::App& app, const Arguments& arguments);

/// --device, the short form of the configuration's device.kind.
void add_device(CLI::App& app, config::DeviceChoice& device);

/// Reads the arguments into `app`'s options. Returns an exit code where --help was asked for and printed, so that there
/// is nothing more to do. Throws InputError for arguments that do not fit.
std::optional<int> parse(CLI::App& app, const Arguments& arguments);

}  // namespace trainyard::cli
