#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "launch/agent.h"
#include "launch/options.h"

namespace trainyard::cli {
namespace {

/// A word that is no subcommand would fail in every rank; here it fails once.
void check_subcommand(const std::string& name) {
  if (name.starts_with('-')) return;
  std::vector<std::string> known;
  for (const Command& command : commands()) known.emplace_back(command.name);
  if (std::ranges::find(known, name) != known.end()) return;
  const auto near = nearest(name, known);
  throw InputError(fmt::format("launch: unknown command '{}'{}; for another program write -- {}", name,
                               near ? fmt::format(", did you mean '{}'?", *near) : "", name));
}

}  // namespace

int run_launch(const Arguments& arguments) {
  const rendezvous::Environment environment = rendezvous::process_environment();
  const auto options = launch::parse_launch(arguments, environment);
  if (!options) return 0;  // --help
  if (options->is_trainyard) check_subcommand(options->command.front());
  return launch::launch_ranks(*options, environment);
}

}  // namespace trainyard::cli
