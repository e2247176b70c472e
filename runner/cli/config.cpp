#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "cli/command.h"
#include "config/check.h"
#include "config/load.h"
#include "config/print.h"
#include "config/reference.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kHelp = R"(trainyard config: check, show and document the configuration of a run

usage: trainyard config check  [--config FILE] [--section.key VALUE]...   judge it without starting anything
       trainyard config print  [--config FILE] [--section.key VALUE]...   show every value and where it came from
       trainyard config schema                                           a JSON Schema for editors
       trainyard config docs                                             docs/configuration.md
)";

config::Loaded load_all(const Arguments& arguments) {
  config::Loaded loaded = config::load(arguments);
  config::refuse(loaded.rest);
  return loaded;
}

int check(const Arguments& arguments) {
  const config::Loaded loaded = load_all(arguments);
  config::check(loaded);
  fmt::print("the configuration is sound (hash {})\n", config::hash(loaded.config));
  return 0;
}

int show(std::string_view text) {
  fmt::print("{}", text);
  return 0;
}

}  // namespace

int run_config(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    show(kHelp);
    return arguments.empty() ? static_cast<int>(ExitCode::Input) : 0;
  }
  const std::string& action = arguments[0];
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (action == "check") return check(rest);
  if (action == "print") return show(config::print_config(load_all(rest)));
  if (action == "schema" || action == "docs") {
    config::refuse(rest);
    return show(action == "schema" ? config::json_schema() : config::documentation());
  }
  throw InputError(fmt::format("unknown action config {}; use check, print, schema or docs", action));
}

}  // namespace trainyard::cli
