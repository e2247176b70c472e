#pragma once

#include <string>

#include "api/job.h"

namespace trainyard::decide {

/// The reason why a job cannot be run at all, with what would be right; "" where it can. The webhook refuses such jobs;
/// this function is for clusters where no webhook runs.
[[nodiscard]] std::string defect_of(const api::Job& job);

}  // namespace trainyard::decide
