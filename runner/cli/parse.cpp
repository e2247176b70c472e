#include "cli/parse.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::cli {

std::optional<int> parse(CLI::App& app, const Arguments& arguments) {
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes a vector from its end
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    throw InputError(fmt::format("{}; {} --help tells more", error.what(), app.get_name()));
  }
  return std::nullopt;
}

}  // namespace trainyard::cli
