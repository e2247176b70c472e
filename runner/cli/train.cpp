#include "cli/command.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "assemble/demo/demo.h"
#include "assemble/device.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/hub_names.h"
#include "cli/plan.h"
#include "cli/reading.h"
#include "cli/session.h"
#include "config/check.h"
#include "config/load.h"
#include "config/print.h"
#include "config/reference.h"
#include "dialects/load.h"
#include "plan/plan.h"
#include "plan/simulation.h"
#include "run/collective_log.h"
#include "run/rank_trace.h"
#include "run/run.h"

namespace trainyard::cli {
namespace {

constexpr const char* kHelp =
    "usage: trainyard train [--config FILE] [--section.key VALUE ...]\n"
    "\n"
    "Trains a model, sharded over the ranks that the environment describes (docs/launching.md); alone without one.\n"
    "Settings come from files and flags; flags win.\n"
    "\n"
    "  --config FILE       YAML with the sections below; may be repeated, later files win. A file of `accelerate "
    "config`,\n"
    "                      torchtitan's TOML or DeepSpeed's json will do, and flags of theirs "
    "(docs/coming-from-pytorch.md)\n"
    "  --demo              a small decoder on Shakespeare, everything built in; other settings change it\n"
    "  --print-config      print the whole configuration, where each value came from, and stop\n"
    "  --inspect           print how the model lies on the ranks, and stop\n"
    "  --dry-run           print the plan of the run (docs/plan.md) and compute nothing, also where no machine holds it\n"
    "  --profile FILE      write a Chrome/Perfetto trace of each rank: FILE with .rank-N before its ending\n"
    "  --help              this text\n"
    "\n"
    "  trainyard launch --nproc-per-node 2 train --config run.yaml --training.steps 100\n"
    "\n";

/// The arguments that are no settings.
struct Own {
  bool help = false, demo = false, print_config = false, inspect = false, dry_run = false;
  std::optional<std::string> profile;
  Arguments settings;  ///< the rest
};

Own own_arguments(const Arguments& arguments) {
  Own own;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string flag = argument.starts_with("--") ? replaced(argument, "_", "-") : argument;
    if (argument == "--help" || argument == "-h") {
      own.help = true;
    } else if (argument == "--demo") {
      own.demo = true;
    } else if (flag == "--print-config") {
      own.print_config = true;
    } else if (argument == "--inspect") {
      own.inspect = true;
    } else if (flag == "--dry-run") {
      own.dry_run = true;
    } else if (argument == "--profile") {
      if (i + 1 == arguments.size()) throw InputError("--profile: a file name must follow");
      own.profile = arguments[++i];
    } else if (argument.starts_with("--profile=")) {
      own.profile = argument.substr(std::string("--profile=").size());
    } else {
      own.settings.push_back(argument);
    }
  }
  return own;
}

config::Loaded load(const Own& own) {
  std::vector<config::YamlText> first;
  if (own.demo) first.push_back({"the demonstration", std::string(train::demo::configuration())});
  config::Loaded loaded = dialects::load(own.settings, first);
  dialects::refuse(loaded.rest, {"--demo", "--print-config", "--inspect", "--dry-run", "--profile", "--help"});
  if (own.dry_run) loaded.instead.emplace("plan", "--dry-run");
  return loaded;
}

std::filesystem::path rank_file(const std::filesystem::path& path, int rank) {
  return path.parent_path() / (path.stem().string() + fmt::format(".rank-{}", rank) + path.extension().string());
}

/// The trace is written after training: what would be in its way is found before. Throws InputError.
void require_writable_folder(const std::filesystem::path& file) {
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0) error.assign(errno, std::generic_category());
  if (error) throw InputError(fmt::format("--profile {}: {}: {}", file.string(), folder.string(), error.message()));
}

void run_profiled(const config::Loaded& loaded, const train::World& world, const std::optional<std::string>& file) {
  std::optional<train::CollectiveLog> log;
  if (!file) {
    if (world.logs_collectives) log.emplace(world.comm);
    return train::run(loaded, world);
  }
  if (loaded.config.metrics.profile_interval > 0)
    throw InputError(fmt::format("{} and --profile are both given; keep one: --profile traces every step",
                                 loaded.subject("metrics.profile_interval")));
  require_writable_folder(*file);
  train::RankTrace trace(world.comm, world.device);
  train::run(loaded, world);
  trace.write(rank_file(*file, world.comm.rank()));
}

}  // namespace

int run_train(const Arguments& arguments, const Launched* launched) {
  const Own own = own_arguments(arguments);
  if (own.help) {
    fmt::print("{}{}", kHelp, config::help_text());
    return 0;
  }
  const config::Loaded given = load(own);
  if (own.print_config) {
    for (const std::string& note : given.notes) spdlog::warn(note);
    fmt::print("{}", config::print_config(given));
    return 0;
  }
  if (const auto plan = given.instead.find("plan"); plan != given.instead.end())
    return plan_instead(given, plan->second, launched), 0;
  config::check(given);
  train::check_device(given);
  const WithoutNames names = without_names(given, NamesFor::Run);
  const config::Loaded& loaded = names.loaded;
  const SessionSettings session{.comm = loaded.config.comm,
                                .device = train::device_kind_of(loaded),
                                .takes_what_is_there = train::takes_what_is_there(loaded),
                                .rendezvous_timeout = loaded.config.rendezvous.timeout,
                                .config_hash = config::hash(names.agreed),
                                .flight_folder = loaded.config.metrics.dir,
                                .config_text = config::shared_text(names.agreed),
                                .launched = launched,
                                .check = [&](int ranks) {
                                  if (!own.inspect) train::check_on_one_host(loaded, ranks);
                                }};
  Arguments command = with_name("train", arguments);
  command.insert(command.end(), names.pins.begin(), names.pins.end());
  return run_in_world(command, session, [&](const train::World& world) {
    if (world.is_main()) log_reading(loaded);
    if (own.inspect) return train::inspect(loaded, world);
    try {
      run_profiled(loaded, world, own.profile);
    } catch (const OutOfMemoryError&) {  // of a device: it says what holds the memory
      throw;
    } catch (const std::bad_alloc&) {  // the run has given everything back by now, so there is room to plan
      throw InputError(train::out_of_memory_text(loaded, {world.comm.world(), world.local_world}));
    }
  });
}

}  // namespace trainyard::cli
