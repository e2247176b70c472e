#include "cli/parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/flags.h"
#include "base/text.h"

namespace trainyard::cli {

void refuse_unknown_subcommand(const CLI::App& app, const Arguments& arguments) {
  if (arguments.empty() || arguments[0].starts_with('-')) return;
  std::vector<std::string> known;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(each->get_name());
  if (known.empty() || std::ranges::find(known, arguments[0]) != known.end()) return;
  const auto near = nearest(arguments[0], known);
  throw InputError(fmt::format("{}: unknown command '{}'{}; known are {}", app.get_name(), arguments[0],
                               near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(known, ", ")));
}

void add_device(CLI::App& app, config::DeviceChoice& device) {
  using config::DeviceChoice;
  static const std::map<std::string, DeviceChoice> choices{
      {"auto", DeviceChoice::Auto}, {"cpu", DeviceChoice::Cpu}, {"cuda", DeviceChoice::Cuda}};
  app.add_option("--device", device, "auto, cpu or cuda: where to compute; auto: cuda where there is a GPU")
      ->transform(CLI::CheckedTransformer(choices, CLI::ignore_case));
}

std::optional<int> parse(CLI::App& app, const Arguments& arguments) {
  refuse_unknown_subcommand(app, arguments);
  refuse_unknown_flag(app, arguments);
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes a vector from its end
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    throw InputError(fmt::format("{}; {} --help tells more", error.what(), app.get_name()));
  }
  return std::nullopt;
}

}  // namespace trainyard::cli
