#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <iostream>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "cli/command.h"
#include "cli/parse.h"
#include "cli/placement.h"
#include "config/check.h"
#include "config/load.h"
#include "config/print.h"
#include "config/reference.h"
#include "dialects/launcher.h"
#include "dialects/load.h"
#include "dialects/questionnaire.h"
#include "dialects/reference.h"
#include "plan/simulation.h"
#include "rendezvous/place.h"

namespace trainyard::cli {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kConfigHelp = R"(trainyard config: check, show and document the configuration of a run

usage: trainyard config [ask] [FILE]                                     ask what `accelerate config` asks, write it there
       trainyard config check  [--config FILE] [--section.key VALUE]...   judge it without starting anything, model and
                               [--world N] [--nodes N --ranks-per-node N] mesh too: for these ranks, else any that fit
       trainyard config print  [--config FILE] [--section.key VALUE]...   show every value and where it came from
       trainyard config schema                                           a JSON Schema for editors
       trainyard config docs [configuration|coming-from-pytorch]         these pages of docs/
)";

config::Loaded load_all(const Arguments& arguments) {
  config::Loaded loaded = dialects::load(arguments);
  dialects::refuse(loaded.rest);
  return loaded;
}

/// A model of this machine's files can be made only where they are.
bool has_model(const config::Model& model) {
  const std::string& path = model.config.empty() ? model.init_from : model.config;
  if (path.empty() || fs::exists(path)) return true;
  spdlog::warn("the model and how it lies on the ranks are not checked: there is no {} here", path);
  return false;
}

int check(const Arguments& arguments) {
  CLI::App app("", "trainyard config check");
  AskedRanks asked;
  add_ranks(app, asked);
  app.allow_extras();
  if (const auto code = parse(app, arguments)) return *code;
  const config::Loaded loaded = load_all(app.remaining());
  config::check(loaded);
  take_ranks_of_file(asked, app.remaining());
  const bool is_asked = asked.world > 0 || asked.nodes > 0;
  const train::Placement placement = is_asked ? placement_of(asked) : train::least_placement(loaded.config);
  if (has_model(loaded.config.model)) train::check_ranks(loaded, placement);
  fmt::print("the configuration is sound{} (hash {})\n",
             is_asked ? fmt::format(" for {} rank{}", placement.world, placement.world == 1 ? "" : "s") : "",
             config::hash(loaded.config));
  return 0;
}

int show(std::string_view text) {
  fmt::print("{}", text);
  return 0;
}

/// Where Accelerate would put it, unless another file is named.
int interview(const Arguments& rest) {
  if (rest.size() > 1) config::refuse({rest.begin() + 1, rest.end()});
  const fs::path file = rest.empty() ? dialects::default_accelerate_path(rendezvous::process_environment()) : rest[0];
  const std::string yaml = dialects::ask(std::cin, std::cout);
  std::error_code error;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  if (error) throw InputError(fmt::format("cannot make {}: {}", file.parent_path().string(), error.message()));
  try {
    write_file_atomically(file, yaml);
  } catch (const fs::filesystem_error& failure) {
    throw InputError(fmt::format("cannot write {}: {}", file.string(), failure.code().message()));
  }
  fmt::print("written to {}; start with: trainyard launch {}train …\n", file.string(),
             rest.empty() ? "" : fmt::format("--config_file {} ", file.string()));
  return 0;
}

}  // namespace

int run_config(const Arguments& arguments) {
  if (arguments.empty()) return interview({});
  if (arguments[0] == "--help" || arguments[0] == "-h") return show(kConfigHelp);
  const std::string& action = arguments[0];
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (action == "ask") return interview(rest);
  if (action == "check") return check(rest);
  if (action == "print") return show(config::print_config(load_all(rest)));
  if (action == "docs" && rest == Arguments{"coming-from-pytorch"}) return show(dialects::documentation());
  if (action == "docs" && rest == Arguments{"configuration"}) return show(config::documentation());
  if (action == "schema" || action == "docs") {
    config::refuse(rest);
    return show(action == "schema" ? config::json_schema() : config::documentation());
  }
  throw InputError(fmt::format("unknown action config {}; use ask, check, print, schema or docs", action));
}

}  // namespace trainyard::cli
