#pragma once

#include <optional>
#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// -1: none is known.
[[nodiscard]] int64_t newest_checkpoint(const Draft& draft);
/// Whether it is newer than when this generation began.
[[nodiscard]] bool has_newer_checkpoint(const Draft& draft);

/// backoffLimit: as many failures as the job may have are behind it, so that one more ends it. A newer checkpoint makes
/// up for those before it: what gets on may fail again, what fails at the same place does not go on for ever.
[[nodiscard]] bool is_budget_spent(const Draft& draft);
/// What a job that fails by it is told.
[[nodiscard]] std::string back_off_limit_message(const api::Job& job);

/// When a job that has started is to fail by activeDeadlineSeconds; none without one.
[[nodiscard]] std::optional<TimePoint> active_deadline(const api::Job& job, const api::JobStatus& status);
/// Whether the job ended at that time or later, which is then why it failed.
[[nodiscard]] bool ended_by_active_deadline(const api::Job& job, const api::JobStatus& status);

/// The annotation trainyard.dev/progress-deadline-seconds; none where it is absent.
[[nodiscard]] std::optional<std::chrono::seconds> progress_deadline_of(const api::Job& job);

/// Why a job fails whose containers the kubelet restarts too often, or that is active longer than
/// activeDeadlineSeconds. None: it is within both limits.
[[nodiscard]] std::optional<std::string> exceeded_limit(const Draft& draft);

}  // namespace trainyard::decide
