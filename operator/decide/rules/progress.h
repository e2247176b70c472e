#pragma once

#include <optional>
#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// The last post of the gang's present generation, where this operator can be posted to since it came; null: none.
[[nodiscard]] const api::ProgressPost* heard_post(const Draft& draft);

/// The status takes what rank 0 posted, at most every ten seconds, so that etcd gets few writes.
[[nodiscard]] Plan posted_progress(const Draft& draft);

/// What stays where the gang ends: how far it came; what the next one does is not known.
[[nodiscard]] std::optional<api::Progress> without_generation(std::optional<api::Progress> progress);

/// What stays of a job that has finished: rank 0's last word, which is also in its pod's termination message, where no
/// outage of the API or the operator loses it.
[[nodiscard]] std::optional<api::Progress> final_progress(const Draft& draft);

struct ProgressTrouble {
  std::string reason, message;
};

/// What rank 0's posts, or that there are none, tell of: checkpoints or metrics that cannot be written, posts that
/// cannot be taken, a deadline that does not count yet.
[[nodiscard]] Timely<ProgressTrouble> progress_trouble(const Draft& draft);

}  // namespace trainyard::decide
