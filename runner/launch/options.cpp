#include "launch/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/flags.h"
#include "base/text.h"

namespace trainyard::launch {
namespace {

using rendezvous::Environment;
using rendezvous::Place;

constexpr const char* kHelp =
    "Starts the ranks of this node, like torchrun, and ends them together.\n\n"
    "COMMAND is a subcommand of trainyard (train --config x.yaml), a program with a slash in its name (./run.sh), or\n"
    "anything after -- (-- python train.py). What no flag says, the environment does: PET_NNODES, PET_NPROC_PER_NODE,\n"
    "PET_NODE_RANK, MASTER_ADDR, MASTER_PORT, … as the operator or torchrun's users set them.";

/// The flags as they were given.
struct Flags {
  std::string nnodes, processes, node_rank, master_addr, master_port, endpoint, backend, id, conf, max_restarts,
      log_dir;
  std::string grace = "30s";
  std::string elsewhere, ignored;
  bool is_module = false, is_elsewhere = false;
  bool standalone = false, no_python = false;
};

void declare(CLI::App& app, Flags& flags) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as torchrun's
  app.add_option("--nnodes", flags.nnodes, "nodes of the world: N, or min:max for an elastic one");
  app.add_option("--nproc-per-node", flags.processes,
                 "ranks a node: auto (the GPUs, else 1), cpu (the cores), gpu, or N");
  app.add_option("--node-rank", flags.node_rank, "this node's number, from 0");
  app.add_option("--master-addr", flags.master_addr, "host of rank 0");
  app.add_option("--master-port", flags.master_port, "port on it where the ranks meet");
  app.add_flag("--standalone", flags.standalone, "this node alone, on a free port");
  app.add_option("--rdzv-endpoint", flags.endpoint, "host:port, in place of --master-addr and --master-port");
  app.add_option("--rdzv-backend", flags.backend, "c10d or static: both are the rendezvous store here");
  app.add_option("--rdzv-id", flags.id, "accepted; jobs are told apart by TRAINYARD_JOB_TOKEN");
  app.add_option(
      "--rdzv-conf", flags.conf,
      "timeout=SECONDS: how long an elastic world waits for more nodes; last_call_timeout=SECONDS: once min have come");
  app.add_option("--max-restarts", flags.max_restarts,
                 "when a rank fails, start all ranks again, so many times");
  app.add_flag("--no-python", flags.no_python, "accepted; commands are programs here");
  app.add_flag("-m,--module", flags.is_module, "torchtitan.train stands for train; other modules: -- python -m NAME");
  // These are here for the help: cli/launch.cpp puts what they say in their place.
  app.add_option("--config-file", flags.elsewhere,
                 "of `accelerate config`: machines and ranks for what no flag says, and --config for train; default: "
                 "the file that `accelerate config` and `trainyard config` write, where there is one");
  app.add_flag("--accelerate", flags.is_elsewhere, "that file must be there");
  app.add_flag("--no-accelerate", flags.is_elsewhere, "that file is left out");
  app.add_option("--fsdp", flags.elsewhere, "for train, as are the words of the Trainer: \"full_shard auto_wrap\"");
  app.add_option("--fsdp-config", flags.elsewhere, "for train: the Trainer's json, or its path");
  app.add_option("--deepspeed", flags.elsewhere, "for train: DeepSpeed's json, or its path")->type_name("JSON");
  app.add_flag("--use-deepspeed", flags.is_elsewhere, "for train, as are the others of `accelerate launch`:");
  for (const char* const name : {"--zero-stage", "--offload-optimizer-device", "--offload-param-device",
                                 "--deepspeed-config-file", "--gradient-clipping", "--gradient-accumulation-steps"})
    app.add_option(name, flags.elsewhere, "of DeepSpeed, for train");
  for (const char* const name :
       {"--local-ranks-filter", "--role", "--tee", "--redirects", "--monitor-interval", "--start-method"})
    app.add_option(name, flags.ignored, "accepted: every rank's output comes in lines of its own");
  app.add_option("--grace", flags.grace, "after SIGTERM the ranks have so long to save before they are killed")
      ->capture_default_str();
  app.add_option("--log-dir", flags.log_dir, "also write each rank's output to DIR/rank-N.out and .err");
}

std::chrono::milliseconds duration_of(const std::string& flag, const std::string& text) {
  struct Unit {
    std::string_view suffix;
    int64_t milliseconds;
  };
  constexpr std::array<Unit, 5> kUnits{{{"ms", 1}, {"min", 60'000}, {"s", 1000}, {"m", 60'000}, {"", 1000}}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    const auto count = parse_int(std::string_view(text).substr(0, text.size() - unit.suffix.size()));
    if (count && *count >= 0 && *count <= 1'000'000'000) return std::chrono::milliseconds(*count * unit.milliseconds);
  }
  throw InputError(fmt::format("{} is '{}'; it must be a time such as 30s, 500ms or 2min", flag, text));
}

void check(const Flags& flags) {
  constexpr std::array<std::string_view, 3> kBackends{"", "c10d", "static"};
  if (std::ranges::find(kBackends, flags.backend) == kBackends.end()) {
    throw InputError(
        fmt::format("--rdzv-backend is '{}'; it must be c10d or static, both of which mean the store on the master",
                    flags.backend));
  }
  if (flags.standalone && !(flags.nnodes.empty() || flags.nnodes == "1")) {
    throw InputError(fmt::format("--standalone contradicts --nnodes {}: it is one node", flags.nnodes));
  }
  if (!flags.endpoint.empty() && !flags.master_addr.empty()) {
    throw InputError(fmt::format("--rdzv-endpoint {} contradicts --master-addr {}; give one of them", flags.endpoint,
                                 flags.master_addr));
  }
}

/// The environment as if it had said what the flags say: then one set of rules checks both.
Environment with_flags(Environment environment, const Flags& flags) {
  // A launcher is no rank, whatever started it.
  for (const char* const rank : {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK",
                                 "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    environment.erase(rank);
  }
  const auto replace = [&](const std::string& value, const char* name, std::initializer_list<const char*> others) {
    if (value.empty()) return;
    environment[name] = value;
    for (const char* const other : others) environment.erase(other);
  };
  if (flags.standalone)
    replace("1", "PET_NNODES",
            {"WORLD_SIZE", "RANK", "PET_NODE_RANK", "MASTER_ADDR", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"});
  replace(flags.nnodes, "PET_NNODES", {"WORLD_SIZE"});
  replace(flags.processes, "PET_NPROC_PER_NODE", {"WORLD_SIZE"});
  replace(flags.node_rank, "PET_NODE_RANK", {"RANK"});
  replace(flags.master_addr, "MASTER_ADDR", {"PET_MASTER_ADDR"});
  replace(flags.master_port, "MASTER_PORT", {"PET_MASTER_PORT"});
  replace(flags.endpoint, "PET_RDZV_ENDPOINT", {"MASTER_ADDR", "PET_MASTER_ADDR"});
  replace(flags.conf, "PET_RDZV_CONF", {});
  replace(flags.max_restarts, "PET_MAX_RESTARTS", {});
  // Without WORLD_SIZE a lone node number left from the environment would have nothing to count in.
  if (!flags.nnodes.empty() && parse_int(flags.nnodes) == 1) replace("0", "PET_NODE_RANK", {"RANK"});
  if (!environment.contains("WORLD_SIZE")) environment.try_emplace("PET_NNODES", "1");
  const auto nodes = environment.find("PET_NNODES");
  const bool is_single = nodes != environment.end() && nodes->second == "1";
  if (is_single && !flags.master_port.empty()) environment.try_emplace("MASTER_ADDR", "127.0.0.1");
  return environment;
}

/// Errors speak of the flag where one was given.
std::string in_terms_of(const Flags& flags, std::string text) {
  const std::array<std::array<std::string, 3>, 8> names{{{"PET_NNODES", "--nnodes", flags.nnodes},
                                                         {"PET_NPROC_PER_NODE", "--nproc-per-node", flags.processes},
                                                         {"PET_NODE_RANK", "--node-rank", flags.node_rank},
                                                         {"MASTER_ADDR", "--master-addr", flags.master_addr},
                                                         {"MASTER_PORT", "--master-port", flags.master_port},
                                                         {"PET_RDZV_ENDPOINT", "--rdzv-endpoint", flags.endpoint},
                                                         {"PET_RDZV_CONF", "--rdzv-conf", flags.conf},
                                                         {"PET_MAX_RESTARTS", "--max-restarts", flags.max_restarts}}};
  for (const auto& [variable, flag, value] : names)
    if (!value.empty()) text = replaced(std::move(text), variable, flag);
  return text;
}

int max_restarts_in(const Environment& environment) {
  constexpr int kMost = 1'000'000;
  const auto given = environment.find("PET_MAX_RESTARTS");
  if (given == environment.end() || given->second.empty()) return 0;
  const auto count = parse_int(given->second);
  if (!count || *count < 0 || *count > kMost)
    throw InputError(
        fmt::format("PET_MAX_RESTARTS is '{}'; it must be a whole number from 0 to {}", given->second, kMost));
  return static_cast<int>(*count);
}

/// Torch's names; what is not for us ("read_timeout") is passed over.
void read_conf(const std::string& conf, LaunchOptions& options) {
  for (const std::string& entry : split(conf, ',')) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string key(trim(entry.substr(0, equals))), value(trim(entry.substr(equals + 1)));
    const auto duration = [&] { return duration_of("PET_RDZV_CONF " + key, value); };
    if (key == "timeout" || key == "join_timeout") options.rendezvous_timeout = duration();
    if (key == "last_call_timeout") options.last_call = duration();
  }
}

std::optional<Flags> parse_flags(std::vector<std::string> arguments) {
  Flags flags;
  CLI::App app(kHelp, "trainyard launch");
  app.footer("Then comes the COMMAND with its arguments.");
  declare(app, flags);
  arguments = spelt_flags(app, std::move(arguments));
  std::ranges::reverse(arguments);  // as CLI11 takes a vector
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw InputError(fmt::format("launch: {}; trainyard launch --help lists the flags", error.what()));
  }
  // torchtitan's run_train.sh asks for any free port of its own host so.
  if (flags.endpoint.ends_with(":0") && (flags.nnodes.empty() || flags.nnodes == "1")) {
    flags.endpoint.clear();
    flags.standalone = true;
  }
  check(flags);
  return flags;
}

}  // namespace

size_t command_begin(const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 9> kAlone{
      "--standalone", "--no-python", "--accelerate", "--no-accelerate", "--use-deepspeed", "--module", "-m",
      "--help",       "-h"};
  size_t at = 0;
  while (at < arguments.size() && arguments[at].starts_with('-') && arguments[at] != "--") {
    const bool takes_next =
        arguments[at].find('=') == std::string::npos &&
        std::ranges::find(kAlone, replaced(arguments[at], "_", "-")) == kAlone.end();
    at += takes_next ? 2 : 1;
  }
  return std::min(at, arguments.size());
}

LaunchOptions options_of(const Place& place, std::vector<std::string> command, const Environment& environment,
                         std::chrono::milliseconds timeout) {
  LaunchOptions options;
  options.node = place.node;
  if (place.kind == Place::Kind::Alone) options.node.node_rank = 0;
  options.master = place.master;
  options.generation = place.generation;
  options.max_restarts = max_restarts_in(environment);
  options.command = std::move(command);
  options.rendezvous_timeout = timeout;
  options.grace = std::chrono::hours(24);
  if (const auto conf = environment.find("PET_RDZV_CONF"); conf != environment.end()) read_conf(conf->second, options);
  return options;
}

std::optional<LaunchOptions> parse_launch(const std::vector<std::string>& arguments, const Environment& environment) {
  const size_t begin = command_begin(arguments);
  const auto flags = parse_flags({arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(begin)});
  if (!flags) return std::nullopt;
  std::vector<std::string> command(arguments.begin() + static_cast<ptrdiff_t>(begin), arguments.end());
  const bool is_marked = !command.empty() && command.front() == "--";
  if (is_marked) command.erase(command.begin());
  if (command.empty())
    throw InputError(
        "launch: no command to run; for example: trainyard launch --nproc-per-node 2 train --config x.yaml");

  if (flags->is_module) {
    if (command.front() != "torchtitan.train")
      throw InputError(fmt::format("launch: -m {}: a Python module is another program; write -- python -m {}",
                                   command.front(), command.front()));
    command.front() = "train";
  }

  const Environment merged = with_flags(environment, *flags);
  LaunchOptions options;
  try {
    options = options_of(rendezvous::place_of(merged), std::move(command), merged);
  } catch (const InputError& error) {
    throw InputError(in_terms_of(*flags, error.what()));
  }
  if (flags->standalone) options.master.reset();
  options.is_trainyard = !is_marked && options.command.front().find('/') == std::string::npos;
  options.grace = duration_of("--grace", flags->grace);
  options.log_dir = flags->log_dir;
  return options;
}

}  // namespace trainyard::launch
