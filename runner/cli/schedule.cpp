#include "cli/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "pipeline/simulation.h"

namespace trainyard::cli {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

pipeline::Schedule schedule_of(const ScheduleOptions& options) {
  if (const auto name = pipeline::named(options.schedule)) {
    if (!options.pipeline || !options.microbatches)
      throw InputError(fmt::format("--schedule {} needs --pipeline, the ranks, and --microbatches", options.schedule));
    return pipeline::make_schedule(*name, *options.pipeline, *options.microbatches,
                                   options.stages_per_rank.value_or(pipeline::default_stages_per_rank(*name)));
  }
  if (!std::filesystem::exists(options.schedule))
    throw InputError(fmt::format("--schedule is '{}', which is no file and no schedule; use {}, or the path of a CSV",
                                 options.schedule, pipeline::words()));
  if (options.pipeline || options.microbatches || options.stages_per_rank)
    throw InputError(
        fmt::format("--schedule {}: the file says ranks, micro-batches and stages; leave --pipeline, "
                    "--microbatches and --stages-per-rank out",
                    options.schedule));
  return pipeline::parse_csv(read_file(options.schedule, kMostBytes), options.schedule);
}

/// "3, 3, 2, 1"; "3" where all are the same.
std::string by_rank(const std::vector<int>& counts) {
  if (std::ranges::all_of(counts, [&](int count) { return count == counts.front(); }))
    return fmt::format("{}", counts.front());
  return fmt::format("{}", fmt::join(counts, ", "));
}

}  // namespace

void print_schedule(const ScheduleOptions& options) {
  const pipeline::Schedule schedule = schedule_of(options);
  const pipeline::Simulation simulation = pipeline::simulate(schedule, {}, "--schedule " + options.schedule);
  const std::string title = fmt::format("{}: {} ranks, {} stages, {} micro-batches", options.schedule, schedule.ranks,
                                        schedule.stages, schedule.microbatches);
  if (!options.svg.empty()) write_file_atomically(options.svg, pipeline::to_svg(simulation, title));
  if (options.as_csv) {
    fmt::print("{}", pipeline::to_csv(schedule));
    return;
  }
  fmt::print("{}\n", title);
  fmt::print(
      "with forward, backward for the input and backward for the weights of equal length: {:g} of them from first to "
      "last, bubble {:.1f} %\n",
      simulation.time, simulation.bubble * 100);
  fmt::print("activations of at most {} micro-batches and stages wait for backward on a rank\n\n{}",
             by_rank(simulation.most_in_flight), pipeline::to_csv(schedule));
}

}  // namespace trainyard::cli
