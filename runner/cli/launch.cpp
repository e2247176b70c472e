#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/session.h"
#include "dialects/launcher.h"
#include "launch/agent.h"
#include "launch/options.h"

namespace trainyard::cli {
namespace {

/// The subcommand of this name that runs on ranks. Throws InputError, with what is meant, where there is none.
const Command& command_of_ranks(const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : commands()) {
    known.emplace_back(command.name);
    if (name != command.name) continue;
    if (command.run_on_ranks) return command;
    throw InputError(fmt::format("launch: `{0}` runs once and not on every rank: write trainyard {0}{1}", name,
                                 name == "plan" ? " --config FILE, which takes the ranks from a file of `accelerate "
                                                  "config`, or --world N"
                                                : ""));
  }
  if (name.ends_with(".py"))
    throw InputError(
        fmt::format("launch: {} is a Python script: write -- python {}; the trainer here is `train`, which "
                    "takes the flags of many scripts (docs/coming-from-pytorch.md)",
                    name, name));
  const auto near = nearest(name, known);
  throw InputError(fmt::format("launch: unknown command '{}'{}; for another program write -- {}", name,
                               near ? fmt::format(", did you mean '{}'?", *near) : "", name));
}

/// The value of Accelerate's --config_file, taken out of the launcher's own flags; --accelerate stands for the file
/// that `accelerate config` and `trainyard config` write. "": neither is given.
std::string take_accelerate_file(Arguments& arguments, const rendezvous::Environment& environment) {
  const size_t end = launch::command_begin(arguments);
  for (size_t i = 0; i < end; ++i) {
    const auto at = arguments.begin() + static_cast<ptrdiff_t>(i);
    const size_t equals = at->find('=');
    const std::string name = at->substr(0, equals);
    if (name == "--accelerate") {
      arguments.erase(at);
      const std::string file = dialects::default_accelerate_path(environment);
      if (std::filesystem::exists(file)) return file;
      throw InputError(
          fmt::format("launch: --accelerate: there is no {}; `trainyard config` asks and writes it", file));
    }
    if (name != "--config_file" && name != "--config-file") continue;
    if (equals == std::string::npos && i + 1 == end)
      throw InputError(fmt::format("launch: {} needs a file after it", name));
    const std::string file = equals == std::string::npos ? *(at + 1) : at->substr(equals + 1);
    arguments.erase(at, at + (equals == std::string::npos ? 2 : 1));
    return file;
  }
  return "";
}

/// What the file says to the launcher goes before the flags, which win; what it says to training is read there.
void follow(const std::string& file, Arguments& arguments, rendezvous::Environment& environment) {
  const dialects::LauncherAdvice advice = dialects::advice_of(file, environment);
  for (const std::string& note : advice.notes) spdlog::warn(note);
  environment.insert(advice.environment.begin(), advice.environment.end());
  arguments.insert(arguments.begin(), advice.flags.begin(), advice.flags.end());
  const auto train = std::ranges::find(arguments, "train");
  if (train != arguments.end()) arguments.insert(train + 1, {"--config", file});
}

}  // namespace

int run_launch(const Arguments& given) {
  Arguments arguments = given;
  rendezvous::Environment environment = rendezvous::process_environment();
  const std::string file = take_accelerate_file(arguments, environment);
  const Arguments flags(arguments.begin(),
                        arguments.begin() + static_cast<ptrdiff_t>(launch::command_begin(arguments)));
  if (!file.empty()) follow(file, arguments, environment);
  std::optional<launch::LaunchOptions> options;
  try {
    options = launch::parse_launch(arguments, environment);
  } catch (const InputError& error) {
    if (file.empty()) throw;
    throw InputError(dialects::in_words_of(file, error.what(), flags, environment));
  }
  if (!options) return 0;  // --help
  if (!options->is_trainyard) return launch::launch_ranks(*options, environment);
  const Launched launched{*options, environment};
  return command_of_ranks(options->command.front())
      .run_on_ranks({options->command.begin() + 1, options->command.end()}, &launched);
}

}  // namespace trainyard::cli
