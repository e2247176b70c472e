#include "base/flags.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace trainyard {
namespace {

[[noreturn]] void refuse(const CLI::App& app, const CLI::App& command, const std::string& flag) {
  std::vector<std::string> known;
  for (const CLI::Option* const option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const auto near = nearest(flag, known);
  throw InputError(fmt::format("{}: unknown flag {}{}; {} --help lists them", app.get_name(), flag,
                               near ? fmt::format(", did you mean {}?", *near) : "", app.get_name()));
}

}  // namespace

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
