#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

#include "tensor/dry_run.h"

namespace trainyard::ops::cpu {

/// OpenMP's runtime is not instrumented: ThreadSanitizer would take its start and end of a team for no order at all.
#if defined(__SANITIZE_THREAD__)  // as g++ says that it is on
constexpr bool kTeams = false;
#elif defined(__has_feature)  // as clang does
constexpr bool kTeams = !__has_feature(thread_sanitizer);
#else
constexpr bool kTeams = true;
#endif

/// Elements a thread should have before a second one is worth waking: about 5 microseconds of streaming.
constexpr int64_t kElementGrain = 16384;

/// Rows of `width` elements that together are worth a thread.
inline int64_t rows_grain(int64_t width) {
  return std::max<int64_t>(kElementGrain / std::max<int64_t>(width, 1), 1);
}

/// Calls body(begin, end) for slices that cover [0, count) in order, one a thread, each a multiple of `grain` long but
/// the last. An exception in one slice ends the call with it, once all slices are done. A dry run calls nothing.
template <typename Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0 || dry_run()) return;
  const int64_t grains = (count + grain - 1) / grain;
  const auto team = static_cast<int>(std::min<int64_t>(grains, omp_get_max_threads()));
  if (team == 1 || !kTeams) return body(int64_t{0}, count);
  std::exception_ptr error;
#pragma omp parallel num_threads(team)
  {
    // The runtime may grant fewer threads than asked for.
    const int64_t granted = omp_get_num_threads(), mine = omp_get_thread_num();
    const int64_t begin = grains * mine / granted * grain, end = std::min(grains * (mine + 1) / granted * grain, count);
    try {
      if (begin < end) body(begin, end);
    } catch (...) {
#pragma omp critical(trainyard_parallel_for)
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

/// While it lives, what this thread calls uses one thread: products too small to share.
class SerialScope {
 public:
  SerialScope() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SerialScope() { omp_set_num_threads(before_); }
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  int before_;
};

}  // namespace trainyard::ops::cpu
