#pragma once

#include <limits>

// The end of ops::clip_factor(), for the kernels of every device.
namespace trainyard::ops {

/// `norm`: of the gradients of the loss as it is.
constexpr float clip_factor_of(double norm, double limit, double loss_scale) {
  if (!(norm - norm == 0)) return std::numeric_limits<float>::quiet_NaN();  // of NaN and infinity that is NaN
  const double clip = limit / (norm + 1e-6);
  return static_cast<float>((limit == 0 || clip > 1 ? 1 : clip) / loss_scale);
}

}  // namespace trainyard::ops
