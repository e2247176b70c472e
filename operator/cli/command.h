#pragma once

#include <CLI/CLI.hpp>

namespace trainyard::cli {

/// Each adds its subcommand to the program; what that does becomes `exit_code` when it has run.
void add_serve(CLI::App& program, int& exit_code);
void add_run(CLI::App& program, int& exit_code);
void add_validate(CLI::App& program, int& exit_code);
void add_render(CLI::App& program, int& exit_code);

}  // namespace trainyard::cli
