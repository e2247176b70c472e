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

std::string part_of_peak(const Entry& entry, const config::Loaded& run) {
  const double peak = run.config.optimizer.lr, least = number_of(entry);
  if (peak < least && !entry.is_default)
    throw InputError(fmt::format("{} {} is above the peak: {}", entry.origin, config::shown(entry.value),
                                 run.statement("optimizer.lr")));
  return fmt::format("{}", peak == 0 ? 0 : std::min(least / peak, 1.0));
}

}  // namespace trainyard::dialects
