#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace trainyard {

/// "--name" of each flag that `command` has.
std::vector<std::string> flags_of(const CLI::App& command);

/// `arguments` with each flag as `app`, or the subcommand that they name, spells it: --max_new_tokens is
/// --max-new-tokens. Throws InputError for the first that neither has, with the nearest that is, and for -nnodes=1. To
/// be asked before CLI11, which complains of what is missing first, and of the words backwards.
std::vector<std::string> spelt_flags(const CLI::App& app, std::vector<std::string> arguments);

}  // namespace trainyard
