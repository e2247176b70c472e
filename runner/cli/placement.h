#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "plan/simulation.h"

namespace trainyard::cli {

struct Launched;  // session.h

/// The ranks that something is asked for and that need not be there: flags of `plan` and `config check`.
struct AskedRanks {
  int world = 0, nodes = 0, ranks_per_node = 0;
};
void add_ranks(CLI::App& app, AskedRanks& asked);

/// Where no flag says how many ranks there are, what the first of the files that `settings` name and `accelerate
/// config` wrote says does. Returns that file; "" for none.
std::string take_ranks_of_file(AskedRanks& asked, const Arguments& settings);

/// Throws InputError where the numbers contradict each other. World 1 where nothing is asked.
train::Placement placement_of(const AskedRanks& asked);

/// The ranks that would be started: those of `launched`; null: of the environment.
AskedRanks ranks_to_start(const Launched* launched);

}  // namespace trainyard::cli
