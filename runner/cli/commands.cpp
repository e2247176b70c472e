#include "cli/command.h"

namespace trainyard::cli {

// One a subcommand, each in the file of its name.
int run_checkpoint(const Arguments& arguments);
int run_config(const Arguments& arguments);
int run_launch(const Arguments& arguments);

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"checkpoint", "inspect, verify and export checkpoints", run_checkpoint},
      {"config", "check, show and document a configuration", run_config},
      {"launch", "start this node's ranks, like torchrun", run_launch},
  };
  return kCommands;
}

}  // namespace trainyard::cli
