#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/flags.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/parse.h"
#include "config/check.h"
#include "config/load.h"
#include "dialects/launcher.h"
#include "dialects/load.h"
#include "train/demo/demo.h"
#include "train/plan.h"
#include "train/setup.h"

namespace trainyard::cli {
namespace {

/// The arguments that are no settings of the run.
struct PlanOptions {
  int world = 0, nodes = 0, ranks_per_node = 0;
  std::string device = "h100", device_memory, flops, memory_bandwidth, link, network, matrix_fraction;
  bool demo = false, json = false;
};

void add_options(CLI::App& app, PlanOptions& options) {
  const auto most = CLI::Range(1, 1 << 20);
  app.add_option("--world", options.world,
                 "ranks; default: nodes x ranks a node, else those of a file of `accelerate config`, else 1")
      ->check(most);
  app.add_option("--nodes", options.nodes, "nodes of --ranks-per-node ranks")->check(most);
  app.add_option("--ranks-per-node", options.ranks_per_node, "default: 8, or all where there are fewer")->check(most);
  app.add_option("--device", options.device,
                 "a100, h100, h100-nvl, h100-pcie, h200, h200-nvl, l40s, l4, b200, gb200, cpu (this machine), custom");
  app.add_option("--device-memory", options.device_memory, "what a rank may hold, such as 80GiB");
  app.add_option("--flops", options.flops, "dense TFLOP/s of a rank in bf16, such as 989");
  app.add_option("--memory-bandwidth", options.memory_bandwidth, "GB/s of a rank's memory");
  app.add_option("--link", options.link, "GB/s and direction between ranks of a node");
  app.add_option("--network", options.network, "Gbit/s a rank and direction between nodes");
  app.add_option("--matrix-fraction", options.matrix_fraction, "of the peak that matrix products reach, such as 0.7");
  app.add_flag("--demo", options.demo, "of the small decoder that train --demo trains");
  app.add_flag("--json", options.json, "for programs");
}

double number_of(const char* flag, const std::string& text) {
  try {
    size_t used = 0;
    const double value = std::stod(text, &used);
    if (used == text.size() && std::isfinite(value) && value > 0) return value;
  } catch (const std::exception&) {  // said below, as for what is left over
  }
  throw InputError(fmt::format("{} is '{}'; a number above 0 is needed", flag, text));
}

train::Placement placement_of(const PlanOptions& options) {
  constexpr int kUsualNode = 8;
  if (options.world > 0 && options.nodes > 0 && options.world % options.nodes != 0)
    throw InputError(fmt::format("--world is {}, which {} --nodes do not divide", options.world, options.nodes));
  int ranks_per_node = options.ranks_per_node;
  if (ranks_per_node == 0 && options.nodes > 0 && options.world > 0) ranks_per_node = options.world / options.nodes;
  if (ranks_per_node == 0) ranks_per_node = kUsualNode;
  const int world = options.world > 0 ? options.world : (options.nodes > 0 ? options.nodes * ranks_per_node : 1);
  if (options.nodes > 0 && options.nodes * ranks_per_node != world)
    throw InputError(fmt::format("--nodes {} x --ranks-per-node {} is {}, but --world is {}", options.nodes,
                                 ranks_per_node, options.nodes * ranks_per_node, world));
  return {world, std::min(ranks_per_node, world)};
}

/// Where no flag says how many ranks there are, what `accelerate config` wrote down does.
void take_ranks_of_file(PlanOptions& options, const Arguments& settings) {
  if (options.world > 0 || options.nodes > 0) return;
  for (const std::string& file : dialects::accelerate_files(settings)) {
    const auto world = dialects::world_of(file);
    if (!world) continue;
    options.world = world->nodes * world->ranks_per_node;
    if (options.ranks_per_node == 0) options.ranks_per_node = world->ranks_per_node;
    spdlog::info("planned for the {} ranks that {} says; --world plans for another number", options.world, file);
    return;
  }
}

train::Hardware base_hardware(const PlanOptions& options, const train::Placement& placement) {
  if (options.device == "cpu") return train::this_machine(placement.ranks_per_node);
  if (options.device != "custom") return train::accelerator(options.device);
  if (options.flops.empty() || options.memory_bandwidth.empty() || options.device_memory.empty())
    throw InputError("--device custom needs --flops, --memory-bandwidth and --device-memory");
  train::Hardware custom = train::accelerator("h100");  // its links and fractions, where nothing else is said
  custom.name = "custom";
  return custom;
}

train::Hardware hardware_of(const PlanOptions& options, const train::Placement& placement) {
  train::Hardware hardware = base_hardware(options, placement);
  if (!options.flops.empty()) {
    const double given = number_of("--flops", options.flops) * 1e12, ratio = given / hardware.half_flops;
    for (double* const rate : {&hardware.float8_flops, &hardware.half_flops, &hardware.float_flops}) *rate *= ratio;
  }
  if (!options.memory_bandwidth.empty())
    hardware.memory_bandwidth = number_of("--memory-bandwidth", options.memory_bandwidth) * 1e9;
  if (!options.link.empty()) hardware.link_bandwidth = number_of("--link", options.link) * 1e9;
  if (!options.network.empty()) hardware.network_bandwidth = number_of("--network", options.network) * 1e9 / 8;
  if (!options.matrix_fraction.empty())
    hardware.matrix_fraction = std::min(number_of("--matrix-fraction", options.matrix_fraction), 1.0);
  if (options.device_memory.empty()) return hardware;
  const auto bytes = parse_bytes(options.device_memory);
  const bool has_unit = !parse_int(options.device_memory);
  if (!bytes || !has_unit)
    throw InputError(fmt::format("--device-memory is '{}'; use 80GiB or 80GB", options.device_memory));
  hardware.memory = *bytes;
  return hardware;
}

}  // namespace

int run_plan(const Arguments& arguments) {
  CLI::App app(
      "What a training run will hold, exchange and take, before anything starts (docs/plan.md). Beside these options "
      "it "
      "takes the files and flags of train; data need not exist.",
      "trainyard plan");
  PlanOptions options;
  add_options(app, options);
  app.allow_extras();
  if (const auto code = parse(app, arguments)) return *code;
  std::vector<config::YamlText> first;
  if (options.demo) first.push_back({"the demonstration", std::string(train::demo::configuration())});
  const config::Loaded given = dialects::load(app.remaining(), first);
  dialects::refuse(given.rest, flags_of(app));
  config::check_for_plan(given);
  take_ranks_of_file(options, app.remaining());
  const train::Placement placement = placement_of(options);
  const config::Loaded loaded = config::for_world(given, placement.world);
  const models::ModelConfig model = train::model_config_of(loaded.config.model);
  const train::Job job{loaded, model, placement, hardware_of(options, placement),
                       train::batch_shape_of(loaded.config, model)};
  if (options.json)
    fmt::print("{}\n", train::plan_json(job).dump(2));
  else
    fmt::print("{}", train::plan_text(job));
  return 0;
}

}  // namespace trainyard::cli
