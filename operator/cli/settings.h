#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "decide/plan.h"

namespace trainyard::cli {

/// The options that every subcommand with manifests has.
void add_files(CLI::App& command, std::vector<std::string>& files);
/// `--restart-scope`, as `serve` has it.
void add_restart_scope(CLI::App& command, decide::Settings& settings);

/// What the decisions are made by where there is no cluster: no nodes, no init container, no address to post progress
/// to.
[[nodiscard]] decide::Settings settings_without_cluster();

}  // namespace trainyard::cli
