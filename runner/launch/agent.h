#pragma once

#include "launch/options.h"

namespace trainyard::launch {

/// Starts the ranks of this node and stays until all have ended. Returns the exit code (docs/interfaces.md): of the
/// rank that failed first, which it names on stderr and in the termination log; where SIGTERM or SIGINT came 143, or
/// 137 if they had to be killed.
///   - their output comes line by line after "[rank N] "; rank 0's goes through as it is where ours is a terminal, so
///     that its progress bar works
///   - when one fails, the others get SIGTERM, and SIGKILL after 4 s or `grace`, whichever is less
///   - SIGTERM and SIGINT are passed on; who has not ended after `grace` is killed
///   - while ranks run, DCGM's profiling is paused (launch/dcgm.h)
///   - it reaps every child of this process, adopted ones too, as process 1 of a container must
/// Throws InputError before anything is started. To be called from the main thread, with no child of one's own running.
int launch_ranks(const LaunchOptions& options, const rendezvous::Environment& environment);

}  // namespace trainyard::launch
