#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// What keeps a job from being run at all, with what would be right; "" where nothing does. The webhook refuses such
/// jobs; this is for clusters where none runs.
[[nodiscard]] std::string defect_of(const api::Job& job);

/// Relays what the pods themselves report, as the reference does: how they ended, what they wait for.
void relay_pod_reports(Draft& draft);

/// Finds what is wrong with the job's pods and nodes, and says it in the Trouble condition and an event: cause, place,
/// next step. Waiting is reported, never punished.
void report_trouble(Draft& draft);

}  // namespace trainyard::decide
