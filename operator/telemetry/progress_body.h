#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "api/job.h"
#include "base/time.h"

namespace trainyard::telemetry {

/// What rank 0 posted.
struct Post {
  api::Progress progress;             ///< `updated` is when it came, `advanced` is left to who knows the post before
  std::optional<int64_t> generation;  ///< of the gang that posts; none: the current one
};

/// More silent ranks than these are not taken: the list is kept in etcd.
inline constexpr size_t kMostSilentRanks = 256;

/// {"step": 120, "totalSteps": 500, "loss": 3.2, "tokensPerSecond": 1234.5, "checkpointStep": 100, "silentRanks": [3],
/// "generation": 2}. Only `step` must be there; keys that are not known are passed over. Throws http::BadBody, naming
/// the key, what it is and what it may be.
[[nodiscard]] Post parse_post(const std::string& body, TimePoint now);

}  // namespace trainyard::telemetry
