#pragma once

#include <cmath>

#include "ops/adamw.h"

namespace trainyard::ops {

/// A tensor's scalars as the kernels take them. The subtractions from 1 are done in double: 1 − 0.999F is off by 1e-5.
struct AdamWFactors {
  float keep, beta1, rest1, beta2, rest2, eps, step_size, inverse_root_correction2;
};

inline AdamWFactors factors_of(const AdamWStep& step, const AdamWTensor& tensor) {
  const double correction1 = 1 - std::pow(step.beta1, static_cast<double>(tensor.step));
  const double correction2 = 1 - std::pow(step.beta2, static_cast<double>(tensor.step));
  return {.keep = static_cast<float>(1 - step.lr * tensor.weight_decay),
          .beta1 = static_cast<float>(step.beta1),
          .rest1 = static_cast<float>(1 - step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .rest2 = static_cast<float>(1 - step.beta2),
          .eps = static_cast<float>(step.eps),
          .step_size = static_cast<float>(step.lr / correction1),
          .inverse_root_correction2 = static_cast<float>(1 / std::sqrt(correction2))};
}

}  // namespace trainyard::ops
