#include "cli/settings.h"

#include <limits>
#include <map>

#include "cli/values.h"

namespace trainyard::cli {

void add_files(CLI::App& command, std::vector<std::string>& files) {
  command.add_option("-f,--filename", files, "A manifest; - is standard input. May be given several times.")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void add_restart_scope(CLI::App& command, decide::Settings& settings) {
  static const std::map<std::string, decide::RestartScope> scopes{{"gang", decide::RestartScope::Gang},
                                                                  {"replica", decide::RestartScope::Replica}};
  command
      .add_option(
          "--restart-scope", settings.restart_scope,
          "What restarts when a pod fails: gang (all of them, the default) or replica (that pod). A job's annotation\n"
          "trainyard.dev/restart-scope wins.")
      ->transform(one_of({"gang", "replica"}) & CLI::Transformer(scopes))
      ->type_name("SCOPE")
      ->option_text("SCOPE");
}

decide::Settings settings_without_cluster() {
  decide::Settings settings;
  settings.watches_nodes = false;
  settings.most_creates = std::numeric_limits<size_t>::max();  // one plan shows all
  return settings;
}

}  // namespace trainyard::cli
