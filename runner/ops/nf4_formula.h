#pragma once

#include <cstdint>

// What a packed matrix in NF4 stands for (ops/nf4.h), for the kernels of every device.
namespace trainyard::ops {

/// The value of a code before it is scaled: quantiles of the normal distribution, rounded as torchao has them.
constexpr float nf4_value(int code) {
  constexpr float kValues[] = {-1.0000F, -0.6962F, -0.5251F, -0.3949F, -0.2844F, -0.1848F, -0.0911F, 0.0000F,
                               0.0796F,  0.1609F,  0.2461F,  0.3379F,  0.4407F,  0.5626F,  0.7230F,  1.0000F};
  return kValues[code];
}

constexpr float nf4_scale_of(int8_t scaler, float factor, float mean) {
  return static_cast<float>(scaler) / factor + mean;
}

}  // namespace trainyard::ops
