#pragma once

#include "api/job.h"

namespace trainyard::controller {

/// The API server may keep a part of a status that was written: a CRD of the reference, or an older one of ours, drops
/// the fields that it does not know.
enum class KeptStatus {
  Whole,
  WithoutReady,   ///< an older CRD of ours; nothing is decided by what it drops
  WithoutCounts,  ///< how often the job was restarted is lost; its generation is there
  WithoutGeneration,
};

[[nodiscard]] KeptStatus kept_status(const api::JobStatus& written, const api::JobStatus& kept);

}  // namespace trainyard::controller
