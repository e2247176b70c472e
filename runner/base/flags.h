#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

namespace trainyard {

/// "--name" of each flag that `command` has.
std::vector<std::string> flags_of(const CLI::App& command);

/// Throws InputError for the first of `arguments` that is a flag of neither `app` nor the subcommand that they name,
/// with the nearest that is. To be asked before CLI11, which complains of what is missing first, and of the words
/// backwards.
void refuse_unknown_flag(const CLI::App& app, std::span<const std::string> arguments);

}  // namespace trainyard
