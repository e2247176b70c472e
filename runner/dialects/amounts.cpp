#include "dialects/amounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/value.h"

namespace trainyard::dialects {

double number_of(const Entry& entry) {
  const config::Rule rule{.type = 0.0, .limits = {.min = 0}, .choices = {}};
  return std::get<double>(config::parse_value(rule, entry.value, entry.origin));
}

std::string steps_of_fraction(const Entry& entry, const config::Loaded& run, std::string_view ours) {
  const int64_t steps = run.config.training.steps;
  if (steps == 0 && entry.is_default) return "";
  if (steps == 0)
    throw InputError(fmt::format("{} is a fraction of --max_steps; give that too, or --{}", entry.origin, ours));
  return fmt::format("{}", std::llrint(std::ceil(number_of(entry) * static_cast<double>(steps))));
}

std::string steps_or_fraction(const Entry& entry, const config::Loaded& run, std::string_view ours) {
  const double number = number_of(entry);
  if (number > 0 && number < 1) return steps_of_fraction(entry, run, ours);
  return number == std::floor(number) ? fmt::format("{:.0f}", number) : entry.value;
}

std::string steps_of_warmup(const Entry& entry, const config::Loaded& run) {
  return run.config.training.steps == 0 ? "" : steps_of_fraction(entry, run, "optimizer.warmup_steps");
}

std::string fraction_of_warmup(const Entry& entry, const config::Loaded& run) {
  return run.config.training.steps == 0 ? entry.value : "";
}

bool has_warmup(const config::Loaded& run) {
  return run.config.optimizer.warmup_steps > 0 || run.config.optimizer.warmup_ratio > 0;
}

std::string part_of_peak(const Entry& entry, const config::Loaded& run) {
  const double peak = run.config.optimizer.lr, least = number_of(entry);
  if (peak < least && !entry.is_default)
    throw InputError(fmt::format("{} {} is above the peak: {}", entry.origin, config::shown(entry.value),
                                 run.statement("optimizer.lr")));
  return fmt::format("{}", peak == 0 ? 0 : std::min(least / peak, 1.0));
}

}  // namespace trainyard::dialects
