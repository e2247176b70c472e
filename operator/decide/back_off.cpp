#include "decide/back_off.h"

#include <algorithm>
#include <cstdint>

namespace trainyard::decide {

std::chrono::milliseconds back_off(int nth, std::chrono::milliseconds first) {
  using namespace std::chrono_literals;
  if (nth <= 1) return 0ms;
  return std::min<std::chrono::milliseconds>(first * (int64_t{1} << std::min(nth - 2, 20)), 5min);
}

std::chrono::milliseconds longest_wait(int streak) {
  return back_off(streak, kFirstWait);
}

}  // namespace trainyard::decide
