#include "optim/clip.h"

#include <algorithm>

namespace trainyard::optim {

float clip_factor(double norm, double limit) {
  return limit == 0 ? 1.0F : static_cast<float>(std::min(1.0, limit / (norm + 1e-6)));
}

}  // namespace trainyard::optim
