#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace trainyard::ops::cpu {

/// Threads that work of `count` units, `grain` at least a thread, is worth.
inline int team_size(int64_t count, int64_t grain) {
  return static_cast<int>(std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, omp_get_max_threads()));
}

/// Calls body(begin, end) for slices that cover [0, count) in order, one a thread, each a multiple of `grain` long but
/// the last. `body` must not throw: an exception cannot leave an OpenMP region.
template <typename Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  const int team = team_size(count, grain);
  if (team == 1) {
    body(int64_t{0}, count);
    return;
  }
  const int64_t grains = (count + grain - 1) / grain;
#pragma omp parallel num_threads(team)
  {
    // The runtime may grant fewer threads than asked for.
    const int64_t granted = omp_get_num_threads(), mine = omp_get_thread_num();
    const int64_t begin = grains * mine / granted * grain, end = std::min(grains * (mine + 1) / granted * grain, count);
    if (begin < end) body(begin, end);
  }
}

/// Elements a thread should have before a second one is worth waking: about 5 microseconds of streaming.
constexpr int64_t kElementGrain = 16384;

}  // namespace trainyard::ops::cpu
