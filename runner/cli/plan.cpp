#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "assemble/demo/demo.h"
#include "assemble/model_config.h"
#include "base/error.h"
#include "base/flags.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/hub_names.h"
#include "cli/parse.h"
#include "cli/placement.h"
#include "cli/plan.h"
#include "cli/reading.h"
#include "cli/schedule.h"
#include "config/check.h"
#include "config/load.h"
#include "dialects/load.h"
#include "pipeline/schedule.h"
#include "plan/layouts.h"
#include "plan/plan.h"
#include "rendezvous/place.h"

namespace trainyard::cli {
namespace {

/// The arguments that are no settings of the run.
struct PlanOptions {
  AskedRanks ranks;
  std::string device = "h100", device_memory, flops, memory_bandwidth, link, network, matrix_fraction;
  bool demo = false, json = false, suggest = false;
  ScheduleOptions schedule;
};

void add_options(CLI::App& app, PlanOptions& options) {
  add_ranks(app, options.ranks);
  app.add_option("--device", options.device,
                 "a100, h100, h100-nvl, h100-pcie, h200, h200-nvl, l40s, l4, b200, gb200, cpu (this machine), custom");
  app.add_option("--device-memory", options.device_memory, "what a rank may hold, such as 80GiB");
  app.add_option("--flops", options.flops, "dense TFLOP/s of a rank in bf16, such as 989");
  app.add_option("--memory-bandwidth", options.memory_bandwidth, "GB/s of a rank's memory");
  app.add_option("--link", options.link, "GB/s and direction between ranks of a node");
  app.add_option("--network", options.network, "Gbit/s a rank and direction between nodes");
  app.add_option("--matrix-fraction", options.matrix_fraction, "of the peak that matrix products reach, such as 0.7");
  auto* const json = app.add_flag("--json", options.json, "for programs");
  app.add_flag("--demo", options.demo, "of the small decoder that train --demo trains");
  app.add_flag("--suggest", options.suggest, "the five fastest layouts that fit, in place of the plan")->excludes(json);
  auto* const schedule = app.add_option("--schedule", options.schedule.schedule,
                                        "print a pipeline schedule in place of the plan: " + pipeline::words() +
                                            ", PyTorch's names, or the path of a CSV of PyTorch's");
  app.add_option("--pipeline", options.schedule.pipeline, "ranks of the pipeline")->needs(schedule);
  app.add_option("--microbatches", options.schedule.microbatches, "of one run of the schedule")->needs(schedule);
  app.add_option("--stages-per-rank", options.schedule.stages_per_rank, "default: as the schedule needs, 1 or 2")
      ->needs(schedule);
  app.add_flag("--csv", options.schedule.as_csv, "the schedule as PyTorch writes it, and nothing else")->needs(schedule);
  app.add_option("--svg", options.schedule.svg, "a file for a picture of the schedule")->needs(schedule);
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

train::Hardware base_hardware(const PlanOptions& options, const train::Placement& placement, DType dtype) {
  if (options.device == "cpu") return train::this_machine(placement.ranks_per_node, dtype);
  if (options.device != "custom") return train::accelerator(options.device);
  if (options.flops.empty() || options.memory_bandwidth.empty() || options.device_memory.empty())
    throw InputError("--device custom needs --flops, --memory-bandwidth and --device-memory");
  train::Hardware custom = train::accelerator("h100");  // its links and fractions, where nothing else is said
  custom.name = "custom";
  return custom;
}

/// The hardware of a run that computes in `dtype`.
train::Hardware hardware_of(const PlanOptions& options, const train::Placement& placement, DType dtype) {
  train::Hardware hardware = base_hardware(options, placement, dtype);
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

train::Job job_of(const config::Loaded& given, const PlanOptions& options) {
  config::check_for_plan(given);
  const train::Placement placement = placement_of(options.ranks);
  const config::Loaded loaded = config::for_world(without_names(given, NamesFor::Plan).loaded, placement.world);
  const models::ModelConfig model = models::for_training(train::model_config_of(loaded.config.model));
  const train::RunSpec spec = train::resolve(loaded, train::ranks_of(placement), {});
  return {loaded, model, placement, hardware_of(options, placement, spec.sharding.policy.precision.param_dtype),
          train::batch_shape_of(spec.batch, loaded.config.data, model)};
}

}  // namespace

void plan_instead(const config::Loaded& loaded, const std::string& by, const Launched* launched) {
  PlanOptions options{.ranks = ranks_to_start(launched)};
  if (loaded.config.device.kind == config::DeviceChoice::Cpu) options.device = "cpu";
  if (!launched && rendezvous::place_of(rendezvous::process_environment()).rank > 0) return;
  spdlog::info("{}: nothing is started; this is the plan for {} rank{} of {}, `trainyard plan --device` knows others", by,
               options.ranks.world, options.ranks.world == 1 ? "" : "s", options.device);
  log_reading(loaded);
  fmt::print("{}", train::plan_text(job_of(loaded, options)));
}

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
  if (options.schedule.asks_for_schedule()) {
    if (!app.remaining().empty())
      throw InputError(fmt::format("plan --schedule takes no setting of a run: {}", app.remaining().front()));
    print_schedule(options.schedule);
    return 0;
  }
  std::vector<config::YamlText> first;
  if (options.demo) first.push_back({"the demonstration", std::string(train::demo::configuration())});
  const config::Loaded given = dialects::load(app.remaining(), first);
  dialects::refuse(given.rest, flags_of(app));
  if (const std::string file = take_ranks_of_file(options.ranks, app.remaining()); !file.empty())
    spdlog::info("planned for the {} ranks that {} says; --world plans for another number", options.ranks.world, file);
  log_reading(given);
  const train::Job job = job_of(given, options);
  if (options.suggest)
    fmt::print("{}", train::layouts_text(job));
  else if (options.json)
    fmt::print("{}\n", train::plan_json(job).dump(2));
  else
    fmt::print("{}", train::plan_text(job));
  return 0;
}

}  // namespace trainyard::cli
