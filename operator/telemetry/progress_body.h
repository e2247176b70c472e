#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "api/job.h"
#include "base/time.h"

namespace trainyard::telemetry {

/// More silent ranks than these are not taken: the list is kept in etcd.
inline constexpr size_t kMostSilentRanks = 256;
/// More of a text that says what is wrong is not kept, for the same reason.
inline constexpr size_t kMostErrorBytes = 512;

/// {"step": 120, "totalSteps": 500, "loss": 3.2, "tokensPerSecond": 1234.5, "checkpointStep": 100, "silentRanks": [3],
/// "checkpointError": "No space left", "metricsError": "…", "configChanged": "train.yaml (sha256 …)",
/// "generation": 2, "worldSize": 8}. Only `step` must be there; keys that are not known are passed over. `advanced` is
/// left to who knows the post before. Throws http::BadBody, naming the key, what it is and what it may be.
[[nodiscard]] api::ProgressPost parse_post(const std::string& body, TimePoint now);

}  // namespace trainyard::telemetry
