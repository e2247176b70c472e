#pragma once

#include "base/time.h"

namespace trainyard::test {

inline const TimePoint kStart = *parse_time("2026-11-21T10:00:00Z");
inline constexpr std::chrono::hours kDay{24};

}  // namespace trainyard::test
