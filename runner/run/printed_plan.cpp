#include "run/printed_plan.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdio>

#include "base/error.h"
#include "metrics/table.h"
#include "ops/threads.h"
#include "plan/plan.h"

namespace trainyard::train {

Planned print_plan(const ToPlan& run) {
  const auto& [loaded, spec, model, loader, total_steps, world, resident_before] = run;
  const bool is_on_cpu = world.device.kind == DeviceKind::Cpu;
  Hardware hardware = is_on_cpu ? this_machine(world.local_world, spec.sharding.policy.precision.param_dtype)
                                : this_device(world.device, world.local_world);
  if (is_on_cpu) hardware.fixed_memory = resident_before;
  const int64_t ranks = spec.sharding.mesh.data_ranks() * spec.batch.accumulation_steps;
  const Job job{loaded,
                model,
                {world.comm.world(), world.local_world},
                hardware,
                {.rows = (loader.sequences_per_step() + ranks - 1) / ranks,
                 .tokens = loader.longest_sequence(),
                 .source = loader.longest_source(),
                 .image_size = batch_shape_of(spec.batch, loaded.config.data, model).image_size}};
  const Simulation simulation = simulate(job);
  fmt::print("{}", metrics::format_table("plan", plan_rows(job, simulation, loader, total_steps)));
  std::fflush(stdout);
  if (const auto refusal = memory_refusal(job, simulation)) throw InputError(*refusal);
  if (const auto warning = memory_warning(job, simulation)) spdlog::warn(*warning);
  return {hardware, simulation.device_bytes(), simulation.peak_flops};
}

std::string peak_text(const Hardware& hardware, double peak) {
  if (!hardware.is_known) return fmt::format("not given, as the peak of {} is not known", hardware.name);
  return fmt::format("the peak is {:.0f} GFLOP/s, {}", peak / 1e9,
                     hardware.is_cpu ? fmt::format("measured in products of the dtype that computes, on {} thread{} a rank",
                                                   ops::threads(), ops::threads() == 1 ? "" : "s")
                                     : fmt::format("of the data sheet of {}", hardware.name));
}

}  // namespace trainyard::train
