#include "base/flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace trainyard {
namespace {

[[noreturn]] void refuse(const CLI::App& app, const CLI::App& command, const std::string& flag) {
  const auto near = nearest(flag, flags_of(command));
  throw InputError(fmt::format("{}: unknown flag {}{}; {} --help lists them", app.get_name(), flag,
                               near ? fmt::format(", did you mean {}?", *near) : "", app.get_name()));
}

}  // namespace

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* const option : command.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

void refuse_unknown_flag(const CLI::App& app, std::span<const std::string> arguments) {
  const CLI::App* command = &app;
  for (size_t at = 0; at < arguments.size() && arguments[at] != "--"; ++at) {
    const std::string& word = arguments[at];
    const auto chosen = command->get_subcommands([&](const CLI::App* each) { return each->check_name(word); });
    if (!chosen.empty()) command = chosen.front();
    if (!word.starts_with("--") || command->get_allow_extras()) continue;
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const CLI::Option* const option = command->get_option_no_throw(flag);
    if (!option) refuse(app, *command, flag);
    if (equals == std::string::npos) at += static_cast<size_t>(option->get_items_expected_min());  // its values
  }
}

}  // namespace trainyard
