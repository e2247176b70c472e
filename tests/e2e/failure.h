#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "process.h"
#include "small_job.h"

// What every failure owes its reader.
namespace trainyard::test {

/// It ended by itself with `code`, and all it says on stderr beside its log is one line that holds each of `says`.
void check_failure(const Ended& ended, int code, const Words& says);

/// The lines of errors: of one process, or the launcher's own and those of its ranks.
std::vector<std::string> errors_of(const Ended& ended);

/// What a run has left in its checkpoint folder beside its claim on it.
std::vector<std::string> saved_in(const std::filesystem::path& folder);

}  // namespace trainyard::test
