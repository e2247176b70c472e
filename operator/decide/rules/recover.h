#pragma once

#include <cstdint>
#include <optional>

#include "decide/draft.h"

// A job's status may be lost: another operator writes it without what it does not know, or a person removes it. The
// generation must not begin anew then, as checkpoint folders know a newer one.
namespace trainyard::decide {

/// Goes on from the newest generation that the job's pods are of. A status is written before the pods that follow from
/// it, so pods of a newer one tell that it was lost; the write that keeps this is guarded as each is.
[[nodiscard]] Plan recovered_generation(const Draft& draft);

/// A rank was refused by its checkpoint folder, as a newer generation of the job has written there.
struct Refusal {
  int64_t generation;       ///< the one that has: it counts as the present one
  api::RestartCause cause;  ///< for which the next is to begin
};
/// None: no rank says so.
[[nodiscard]] std::optional<Refusal> refusal_of(const Draft& draft);

}  // namespace trainyard::decide
