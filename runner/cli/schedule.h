#pragma once

#include <optional>
#include <string>

namespace trainyard::cli {

/// These are the options of `trainyard plan --schedule`.
struct ScheduleOptions {
  std::string schedule;  ///< a name, or the path of a CSV; empty: no schedule is asked for
  std::optional<int> pipeline, microbatches, stages_per_rank;
  bool as_csv = false;
  std::string svg;  ///< a file that is written; empty: none

  [[nodiscard]] bool asks_for_schedule() const { return !schedule.empty(); }
};

/// Prints the schedule, once it has been simulated. Throws InputError where it cannot be carried out, or an option is
/// missing or says what the file says.
void print_schedule(const ScheduleOptions& options);

}  // namespace trainyard::cli
