#pragma once

#include <string>
#include <string_view>

#include "dialects/document.h"

// Numbers of other programs' flags, and what follows from them and from the whole run.
namespace trainyard::dialects {

/// Throws InputError where the value is no number of at least 0.
double number_of(const Entry& entry);

/// The steps that a fraction of the run's are, rounded up; "" for a default where the steps follow from the data.
/// Throws InputError for one that is given there, which names `ours`, the key that takes steps.
std::string steps_of_fraction(const Entry& entry, const config::Loaded& run, std::string_view ours);

/// Steps, or a fraction of them below 1; 0 asks for nothing where the same is said as a fraction.
std::string steps_or_fraction(const Entry& entry, const config::Loaded& run, std::string_view ours);

/// A warm-up that is a fraction of the steps: those steps, where their number is known before the data is read; else
/// "", and the fraction itself is what is set.
std::string steps_of_warmup(const Entry& entry, const config::Loaded& run);
std::string fraction_of_warmup(const Entry& entry, const config::Loaded& run);
inline constexpr std::string_view kWithoutSteps = "the fraction itself, where the steps follow from the data";
bool has_warmup(const config::Loaded& run);

/// A least rate as a part of the peak. Throws InputError where it is given and above that.
std::string part_of_peak(const Entry& entry, const config::Loaded& run);

}  // namespace trainyard::dialects
