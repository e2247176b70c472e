#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/settings.h"
#include "local/manifest/offline.h"

namespace trainyard::cli {
namespace {

int validate(const std::vector<std::string>& files) {
  const local::Validation result = local::validate_files(files);
  for (const std::string& note : result.notes) fmt::print(stderr, "{}\n", note);
  for (const std::string& problem : result.problems) fmt::print(stderr, "{}\n", problem);
  if (!result.problems.empty()) return 2;
  fmt::print("{} job{} valid\n", result.jobs, result.jobs == 1 ? "" : "s");
  return 0;
}

}  // namespace

void add_validate(CLI::App& program, int& exit_code) {
  CLI::App* const command =
      program.add_subcommand("validate", "Check manifests as the API server and the webhook would, without either");
  const auto files = std::make_shared<std::vector<std::string>>();
  add_files(*command, *files);
  command->footer("Names each problem with its file and line. Exit code 2 where there is one.");
  command->callback([files, &exit_code] { exit_code = validate(*files); });
}

}  // namespace trainyard::cli
