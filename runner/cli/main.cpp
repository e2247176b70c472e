#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/guards.h"
#include "common/standard_streams.h"
#include "launch/termination_log.h"
#include "plan/environment.h"
#include "tensor/memory.h"

namespace trainyard::cli {
namespace {

void print_help() {
  fmt::print("trainyard: sharded training of transformer language models\n\nusage: trainyard COMMAND [ARGUMENTS]\n\n");
  for (const Command& command : commands()) fmt::print("  {:<12} {}\n", command.name, command.summary);
  fmt::print("\ntrainyard COMMAND --help tells more; --version and --env tell what this is and where it runs.\n");
}

const Command& find_command(const std::string& name) {
  const auto found =
      std::ranges::find(commands(), name, [](const Command& command) { return std::string(command.name); });
  if (found != commands().end()) return *found;
  std::vector<std::string> known;
  for (const Command& command : commands()) known.emplace_back(command.name);
  const auto near = nearest(name, known);
  throw InputError(fmt::format("unknown command '{}'{}; trainyard --help lists them", name,
                               near ? fmt::format(", did you mean '{}'?", *near) : ""));
}

int run(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_help();
    return arguments.empty() ? static_cast<int>(ExitCode::Input) : 0;
  }
  if (arguments[0] == "--version") {
    fmt::print("trainyard {}\n", TRAINYARD_VERSION);
    return 0;
  }
  if (arguments[0] == "--env") {
    fmt::print("{}", metrics::format_table("environment", train::environment_rows()));
    return 0;
  }
  const Command& command = find_command(arguments[0]);
  const Arguments rest(arguments.begin() + 1, arguments.end());
  return command.run ? command.run(rest) : command.run_on_ranks(rest, nullptr);
}

/// "; … take less"; nothing of a command of which nothing is known.
std::string what_takes_less(const Arguments& arguments) {
  for (const Command& command : commands())
    if (!arguments.empty() && command.name == arguments[0] && command.takes_less)
      return fmt::format("; {} take less", command.takes_less);
  return "";
}

std::string text_of(const std::exception& error, const Arguments& arguments) {
  if (!dynamic_cast<const std::bad_alloc*>(&error)) return message_of(error);
  const bool is_of_device = dynamic_cast<const OutOfMemoryError*>(&error) != nullptr;
  return (is_of_device ? error.what() : fmt::format("out of memory with {} resident", human_bytes(resident_bytes()))) +
         what_takes_less(arguments);
}

/// One failure, one line, there and where Kubernetes looks for it, of each rank, also of one that leaves it to
/// another of its log to print it.
int report(const std::exception& error, const Arguments& arguments) {
  const ExitCode code = exit_code_of(error);
  const char* const prefix = code == ExitCode::Defect ? "defect (please report it)" : "error";
  const std::string text = text_of(error, arguments);
  const auto* const verdict = dynamic_cast<const VerdictError*>(&error);
  if (!verdict || verdict->is_printed_here()) fmt::print(stderr, "trainyard: {}: {}\n", prefix, text);
  launch::write_termination_log(text);
  return static_cast<int>(code);
}

/// NO_COLOR (no-color.org) asks for plain text; else a terminal gets colours.
spdlog::color_mode color_mode() {
  const char* const no_color = std::getenv("NO_COLOR");
  return no_color && *no_color ? spdlog::color_mode::never : spdlog::color_mode::automatic;
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  trainyard::keep_standard_streams();
  trainyard::cli::take_file_limit_as_error();
  // stdout is for results; spdlog's own default would mix log lines into them.
  spdlog::set_default_logger(spdlog::stderr_color_mt("trainyard", trainyard::cli::color_mode()));
  trainyard::cli::cap_threads(argv);
  const trainyard::cli::Arguments arguments(argv + 1, argv + argc);
  trainyard::cli::report_unexpected_ends(
      [&arguments](const std::exception& error) { return trainyard::cli::report(error, arguments); });
  try {
    const int code = trainyard::cli::run(arguments);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw trainyard::InputError("not all could be written to stdout; is its disk full?");
    return code;
  } catch (const std::exception& error) {
    return trainyard::cli::report(error, arguments);
  }
}
