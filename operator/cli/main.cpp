#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/shortage.h"
#include "base/text.h"
#include "cli/command.h"
#include "common/standard_streams.h"
#include "http/listener.h"
#include "kube/kubeconfig.h"
#include "local/manifest/refusal.h"

namespace trainyard::cli {
namespace {

constexpr int kDefect = 1, kUserError = 2;

int report(std::string_view problem, int code) {
  fmt::print(stderr, "trainyard-operator: {}: {}\n", code == kDefect ? "defect (please report it)" : "error", problem);
  return code;
}

/// What no type of ours tells: a shortage is the user's to mend, all else a defect.
int report_exception(const std::exception& error) {
  const auto shortage = shortage_in(error);
  return report(shortage ? *shortage : error.what(), shortage ? kUserError : kDefect);
}

/// It tells of an exception that a thread did not catch.
[[noreturn]] void on_terminate() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    ::_exit(report_exception(error));
  } catch (...) {
    std::fputs("trainyard-operator: defect (please report it): an exception of an unknown type\n", stderr);
  }
  std::abort();
}

/// What CLI11 says, with the neighbour of a word that it does not know.
std::string problem_of(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> unknown = program.remaining(true);
  std::vector<std::string> known;
  for (const CLI::App* each : command->get_subcommands({})) known.push_back(each->get_name());
  for (const CLI::Option* option : command->get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const auto near = unknown.empty() ? std::nullopt : nearest(unknown.front(), known);
  const std::string hint =
      fmt::format("; {} --help tells what there is",
                  command == &program ? "trainyard-operator" : "trainyard-operator " + command->get_name());
  if (unknown.empty()) return error.what() + hint;
  return fmt::format("unknown word '{}'{}{}", unknown.front(), near ? fmt::format(", did you mean '{}'?", *near) : "",
                     hint);
}

/// Flags alone, or nothing: an old Deployment starts the operator so.
bool means_serve(const std::vector<std::string>& words) {
  if (words.empty()) return true;
  return words.front().starts_with('-') && words.front() != "-h" && words.front() != "--help" &&
         words.front() != "--version";
}

/// "--namespace=" gives an empty text, as with Go's flags; CLI11 alone would miss a value.
std::vector<std::string> with_empty_values(const std::vector<std::string>& words) {
  std::vector<std::string> split;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      split.insert(split.end(), word, words.end());
      break;
    }
    const bool is_empty = word->starts_with("--") && word->find('=') == word->size() - 1;
    split.push_back(is_empty ? word->substr(0, word->size() - 1) : *word);
    if (is_empty) split.emplace_back();
  }
  return split;
}

int run(int argc, char** argv) {
  CLI::App program("Runs kubeflow.org/v1 PyTorchJobs.", "trainyard-operator");
  int exit_code = 0;
  program.set_version_flag("--version", std::string("trainyard-operator ") + TRAINYARD_VERSION);
  program.require_subcommand(1);
  add_serve(program, exit_code);
  add_run(program, exit_code);
  add_validate(program, exit_code);
  add_render(program, exit_code);
  std::vector<std::string> words = with_empty_values({argv + 1, argv + argc});
  if (means_serve(words)) words.insert(words.begin(), "serve");
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    program.parse(std::move(words));
    return exit_code;
  } catch (const CLI::Success& wanted) {  // --help, --version
    return program.exit(wanted);
  } catch (const CLI::ParseError& error) {
    return report(problem_of(program, error), kUserError);
  }
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  using namespace trainyard;
  keep_standard_streams();
  // A file that may not grow (ulimit -f) is a write that fails, and no death.
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
  std::set_terminate(cli::on_terminate);
  try {
    return cli::run(argc, argv);
  } catch (const local::Refusal& problem) {
    return cli::report(problem.what(), cli::kUserError);
  } catch (const api::ParseError& problem) {
    return cli::report(problem.what(), cli::kUserError);
  } catch (const kube::ConfigError& problem) {
    return cli::report(problem.what(), cli::kUserError);
  } catch (const http::ListenError& problem) {
    return cli::report(problem.what(), cli::kUserError);
  } catch (const std::exception& error) {
    return cli::report_exception(error);
  }
}
