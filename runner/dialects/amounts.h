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

/// A least rate as a part of the peak. Throws InputError where it is given and above that.
std::string part_of_peak(const Entry& entry, const config::Loaded& run);

}  // namespace trainyard::dialects
