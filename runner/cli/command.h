#pragma once

#include <span>
#include <string>
#include <vector>

// One file a subcommand: it reads its arguments, calls the floors below, and prints. No logic lives here.
namespace trainyard::cli {

using Arguments = std::vector<std::string>;  ///< without the program's and the subcommand's name

struct Launched;  // session.h

/// A subcommand; one of the two functions is given. They return the exit code and throw what base/error.h names; main()
/// holds the only catch.
struct Command {
  const char* name;
  const char* summary;                     ///< one line of `trainyard --help`
  int (*run)(const Arguments& arguments);  ///< of what runs once: many of it would each do all the same
  /// It runs a command that every rank takes part in: on the ranks of `launched`; null: on those of the environment.
  int (*run_on_ranks)(const Arguments& arguments, const Launched* launched) = nullptr;
  const char* takes_less = nullptr;  ///< of memory, where it ran out; null: that does not depend on the arguments
};

/// The words that start a subcommand again: its name and its arguments.
inline Arguments with_name(const char* name, const Arguments& arguments) {
  Arguments words{name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// Every subcommand, in the order of the help.
std::span<const Command> commands();

}  // namespace trainyard::cli
