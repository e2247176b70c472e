#pragma once

#include <span>

#include "checkpoint/snapshot.h"

namespace trainyard::checkpoint {

/// What of `snapshot` rank `rank` writes into a folder that `members` share. Of rows that several of them hold
/// (Snapshot::holders) each tensor is written by one, so that they write in parallel and each about as much; the
/// others' `local` is undefined. Says the same on every rank that has the same shapes, without asking anybody.
Snapshot own_part(const Snapshot& snapshot, int rank, std::span<const int> members);

}  // namespace trainyard::checkpoint
