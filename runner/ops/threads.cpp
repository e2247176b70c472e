#include "ops/threads.h"

#include <fmt/format.h>
#include <omp.h>

#include <stdexcept>

namespace trainyard::ops {

void set_threads(int count) {
  if (count < 1) throw std::invalid_argument(fmt::format("set_threads: {} threads; at least 1 is needed", count));
  omp_set_num_threads(count);
}

int threads() {
  return omp_get_max_threads();
}

}  // namespace trainyard::ops
