#pragma once

#include <optional>
#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// The last post of the gang's present generation, where this operator can be posted to since it came; null: none.
[[nodiscard]] const api::ProgressPost* heard_post(const Draft& draft);

/// Takes what rank 0 posted into the status, at most every ten seconds, so that etcd gets few writes.
void take_progress(Draft& draft);

/// The speed and how long the rest takes are not known any more: the gang ends, or does not get on.
void forget_speed(Draft& draft);

/// The gang ends: how far it came stays; what the next one does is not known.
void forget_generation(Draft& draft);

/// What stays of a job that has finished: rank 0's last word, which is also in its pod's termination message, where no
/// outage of the API or the operator loses it.
void finish_progress(Draft& draft);

struct ProgressTrouble {
  std::string reason, message;
};

/// What rank 0's posts, or that there are none, tell of: checkpoints or metrics that cannot be written, posts that
/// cannot be taken, a deadline that does not count yet.
[[nodiscard]] Timely<ProgressTrouble> progress_trouble(const Draft& draft);

}  // namespace trainyard::decide
