#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// Counts the pods of this generation by type.
void count_replicas(Draft& draft);
/// Succeeds the job where its master has, or without one all workers have (of an elastic job: any). True where it did.
bool conclude(Draft& draft);
/// Running, where the master is (without one: a worker) and nothing has failed.
void note_running(Draft& draft);

}  // namespace trainyard::decide
