#include <fmt/format.h>

#include <map>
#include <memory>

#include "cli/command.h"
#include "cli/settings.h"
#include "local/manifest/offline.h"

namespace trainyard::cli {
namespace {

struct RenderOptions {
  std::vector<std::string> files;
  local::Format format = local::Format::Yaml;
  decide::Settings decisions = settings_without_cluster();
};

}  // namespace

void add_render(CLI::App& program, int& exit_code) {
  static const std::map<std::string, local::Format> formats{{"yaml", local::Format::Yaml},
                                                            {"json", local::Format::Json}};
  CLI::App* const command =
      program.add_subcommand("render", "Print the objects that the operator would create for the jobs of a manifest");
  const auto options = std::make_shared<RenderOptions>();
  add_files(*command, options->files);
  command->add_option("-o,--output", options->format, "yaml (the default) or json")
      ->transform(CLI::CheckedTransformer(formats))
      ->option_text("FORMAT");
  add_restart_scope(*command, options->decisions);
  command->footer(
      "The same for the same input, but for names that generateName makes. Exit code 2 where a job is not valid.");
  command->callback([options, &exit_code] {
    const local::Rendering rendering = local::render_files(options->files, options->decisions, options->format);
    for (const std::string& note : rendering.notes) fmt::print(stderr, "{}\n", note);
    fmt::print("{}", rendering.text);
    exit_code = 0;
  });
}

}  // namespace trainyard::cli
