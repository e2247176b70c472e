#include "base/flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace trainyard {
namespace {

[[noreturn]] void refuse(const CLI::App& app, const CLI::App& command, const std::string& flag) {
  const auto near = nearest(flag, flags_of(command));
  throw InputError(fmt::format("{}: unknown flag {}{}; {} --help lists them", app.get_name(), flag,
                               near ? fmt::format(", did you mean {}?", *near) : "", app.get_name()));
}

struct KnownFlag {
  std::string name;
  const CLI::Option* option;  ///< null: `command` has none of this name
};

/// The flag as it is written, else another that differs in - and _ alone.
KnownFlag known_flag(const CLI::App& command, const std::string& flag) {
  const auto hyphened = [](const std::string& name) { return replaced(name, "_", "-"); };
  for (const std::string& each : flags_of(command))
    if (hyphened(each) == hyphened(flag)) return {each, command.get_option_no_throw(each)};
  return {flag, command.get_option_no_throw(flag)};
}

/// "-nnodes=1" would be read as letters of their own. A name of one letter is such a letter.
void refuse_single_hyphen(const CLI::App& app, const CLI::App& command, const std::string& word) {
  const std::string given = word.substr(0, word.find('='));
  if (given.size() < 3 || given[0] != '-' || given[1] == '-') return;
  const auto [name, option] = known_flag(command, "-" + given);
  if (option) throw InputError(fmt::format("{}: unknown flag {}, did you mean {}?", app.get_name(), given, name));
}

}  // namespace

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* const option : command.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::vector<std::string> spelt_flags(const CLI::App& app, std::vector<std::string> arguments) {
  const CLI::App* command = &app;
  for (size_t at = 0; at < arguments.size() && arguments[at] != "--"; ++at) {
    std::string& word = arguments[at];
    const auto chosen = command->get_subcommands([&](const CLI::App* each) { return each->check_name(word); });
    if (!chosen.empty()) command = chosen.front();
    refuse_single_hyphen(app, *command, word);
    if (!word.starts_with("--")) continue;
    const size_t equals = std::min(word.find('='), word.size());
    const auto [name, option] = known_flag(*command, word.substr(0, equals));
    if (!option && command->get_allow_extras()) continue;
    if (!option) refuse(app, *command, name);
    const bool has_value = equals < word.size();
    word.replace(0, equals, name);
    if (!has_value) at += static_cast<size_t>(option->get_items_expected_min());  // its values
  }
  return arguments;
}

}  // namespace trainyard
