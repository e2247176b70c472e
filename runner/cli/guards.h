#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/command.h"

// What main() sets up before the command, so that whatever ends the process ends it with one line and an exit code.
namespace trainyard::cli {

using Report = std::function<int(const std::exception& error)>;  ///< prints it; the exit code

/// A file that may not grow (ulimit -f) is a failed write, as a full disk is, and no death by SIGXFSZ.
void take_file_limit_as_error();

/// An exception that no thread catches, and an end by OpenMP, which exits where it gets no thread, are reported like
/// those that main() catches. `report` is kept; one per process.
void report_unexpected_ends(Report report);

/// The OMP_NUM_THREADS that counts where `wanted` is more than anybody's use: four for each of `cpus`, at least 16. None:
/// `wanted` is fine, or no number.
std::optional<int> capped_threads(const std::string& wanted, int cpus);

/// Where OMP_NUM_THREADS is beyond that the program begins again with the cap, since OpenMP reads it once: at the start.
void cap_threads(char** argv);

}  // namespace trainyard::cli
