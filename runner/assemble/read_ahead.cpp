#include "assemble/read_ahead.h"

#include "data/prefetched.h"

namespace trainyard::train {

std::unique_ptr<data::Loader> by_workers(const config::Data& data,
                                         const std::function<std::unique_ptr<data::Loader>()>& make) {
  if (data.num_workers == 0) return make();
  return data::prefetched(make, {.workers = data.num_workers, .ahead = data.prefetch_factor});
}

}  // namespace trainyard::train
