#pragma once

#include <algorithm>
#include <chrono>

#include "api/job.h"

namespace trainyard::decide {

/// Times of the status that lie ahead were written by a calendar that has been set back since, or by another operator's
/// that goes wrong: what counts from them (deadline, time to live, back-off, stall) counts from now.
[[nodiscard]] api::JobStatus with_mended_times(api::JobStatus status, TimePoint now);

/// The limit, and a century at most: a time limit that means "never" must not leave the clock's range.
[[nodiscard]] constexpr std::chrono::seconds bounded(std::chrono::seconds limit) {
  return std::min<std::chrono::seconds>(limit, std::chrono::years(100));
}

}  // namespace trainyard::decide
