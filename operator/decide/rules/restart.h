#pragma once

#include <chrono>
#include <variant>

#include "decide/rules/failures.h"
#include "decide/rules/recover.h"

namespace trainyard::decide {

/// What has failed stays as it is until its back-off is over, so that its logs can be read.
[[nodiscard]] bool waits_for_back_off(const api::Restarts& restarts, TimePoint now);

/// Ranks ended for another's loss, and that one is about to be told of: nothing is done before.
struct AwaitedCause {};
/// The job has another number of replicas than its ranks know.
struct Resized {};
/// What a gang cannot go on with.
using GangBreak = std::variant<AwaitedCause, Loss, Resized>;

/// Gang scope: what breaks the gang. None: it goes on.
[[nodiscard]] Timely<GangBreak> gang_break(const Draft& draft);
/// The whole gang starts anew as the next generation, or the job fails.
[[nodiscard]] Plan gang_restart(const Draft& draft, const GangBreak& why);
/// A start that was refused since the status had lost its generation is nobody's failure: all pods start anew, as the
/// generation after the one that was met.
[[nodiscard]] Plan refused_restart(const Draft& draft, const Refusal& refusal);

/// Replica scope, as the reference: a failed pod is made anew by itself.
[[nodiscard]] Plan replica_restart(const Draft& draft, const Replica& replica);
/// Replica scope: pods that were counted as failed and are gone by now are of no use any more.
[[nodiscard]] Plan forgotten_pods(const Draft& draft);

}  // namespace trainyard::decide
