#pragma once

#include <string>

#include "api/job.h"

// Conditions as the reference's users know them: unique by type, a changed one at the end, so that the last one is the
// job's State.
namespace trainyard::decide {

namespace condition {
inline constexpr const char* kCreated = "Created";
inline constexpr const char* kRunning = "Running";
inline constexpr const char* kRestarting = "Restarting";
inline constexpr const char* kSucceeded = "Succeeded";
inline constexpr const char* kFailed = "Failed";
inline constexpr const char* kSuspended = "Suspended";
/// Ours: something is wrong that the job itself cannot mend; reason and message say what, where, and the next step.
/// It stands before the reference's, as users read the last one.
inline constexpr const char* kTrouble = "Trouble";
}  // namespace condition

namespace reason {
inline constexpr const char* kCreated = "PyTorchJobCreated";
inline constexpr const char* kRunning = "PyTorchJobRunning";
inline constexpr const char* kRestarting = "PyTorchJobRestarting";
inline constexpr const char* kSucceeded = "PyTorchJobSucceeded";
inline constexpr const char* kFailed = "PyTorchJobFailed";
inline constexpr const char* kSuspended = "PyTorchJobSuspended";
inline constexpr const char* kResumed = "PyTorchJobResumed";
}  // namespace reason

[[nodiscard]] const api::Condition* find_condition(const api::JobStatus& status, const std::string& type);
[[nodiscard]] bool is_true(const api::JobStatus& status, const std::string& type);
/// Succeeded or Failed: nothing changes any more but what is cleaned up.
[[nodiscard]] bool is_finished(const api::JobStatus& status);

/// Sets a condition, unless it has that status and reason already or the job has failed. Running and Restarting remove
/// each other; Succeeded and Failed set Running False.
void set_condition(api::JobStatus& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, TimePoint now);

/// Sets or, where `message` is empty, removes the Trouble condition.
void set_trouble(api::JobStatus& status, const std::string& reason, const std::string& message, TimePoint now);

}  // namespace trainyard::decide
