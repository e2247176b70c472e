#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "data/loader.h"

namespace trainyard::data {

struct Prefetched {
  int64_t workers = 1;  ///< threads that read
  int64_t ahead = 2;    ///< micro-batches that each has ready at most
};

/// A loader whose micro-batches are made ahead of their use by threads, each of which has a loader of its own from
/// `make` and makes every so-many-th micro-batch. What it gives out, its state and its errors are those of one loader
/// of `make`, at any number of threads. They count in the memory ledger of the thread that calls this.
std::unique_ptr<Loader> prefetched(const std::function<std::unique_ptr<Loader>()>& make, const Prefetched& options);

}  // namespace trainyard::data
