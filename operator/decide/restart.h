#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// How long what failed `streak` times in a row waits at the most before it is made anew.
[[nodiscard]] std::chrono::milliseconds longest_wait(int streak);

/// Gang scope: where a replica is lost, the whole gang starts anew as the next generation, or the job fails. True where
/// either happened, or is about to.
bool restart_gang(Draft& draft);
/// Replica scope, as the reference: each failed pod is made anew by itself.
void restart_replicas(Draft& draft);

}  // namespace trainyard::decide
