#include "local/run.h"

#include <memory>

#include "cli/command.h"
#include "cli/settings.h"

namespace trainyard::cli {

void add_run(CLI::App& program, int& exit_code) {
  CLI::App* const command =
      program.add_subcommand("run", "Run PyTorchJobs on this machine: their pods as processes, no cluster");
  const auto options = std::make_shared<local::RunOptions>();
  options->decisions = settings_without_cluster();
  options->decisions.init_container = false;  // everything is on one host: no name has to be waited for
  add_files(*command, options->files);
  command
      ->add_option("--dir", options->folder, "Where logs, status and claims' folders go (default: trainyard-run/JOB)")
      ->type_name("FOLDER");
  add_restart_scope(*command, options->decisions);
  command
      ->add_option("arguments", options->arguments, "After --: added to the arguments of the containers named pytorch")
      ->type_name("")
      ->option_text("[-- ARGUMENT...]");
  command->footer(
      "Containers' commands run from PATH; images are not used. Ctrl-C stops the pods in order, a second one at once.\n"
      "Exit code: 0 when every job succeeded, else that of the container that the first failed job failed for (1 for "
      "a\n"
      "deadline), 2 for what the manifest has to change, 130 or 143 after a signal.\n"
      "  trainyard-operator run -f job.yaml\n"
      "  trainyard-operator run -f job.yaml -- --training.steps 100\n"
      "  kubectl kustomize overlay | trainyard-operator run -f -");
  command->callback([options, &exit_code] { exit_code = local::run(*options); });
}

}  // namespace trainyard::cli
