#include "cli/command.h"

namespace trainyard::cli {

// One a subcommand, each in the file of its name.
int run_config(const Arguments& arguments);

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"config", "check, show and document a configuration", run_config},
  };
  return kCommands;
}

}  // namespace trainyard::cli
