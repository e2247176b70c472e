#pragma once

namespace trainyard::ops {

/// How many threads the ops of the calling thread use from now on; each thread has its own number (an in-process rank
/// is a thread). Work is split by position, never by who comes first: the same count gives the same bits.
/// Throws std::invalid_argument for a count below 1.
void set_threads(int count);

/// The number in force for the calling thread: set_threads(), else OMP_NUM_THREADS, else the machine's cores.
int threads();

}  // namespace trainyard::ops
