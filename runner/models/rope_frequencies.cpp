#include "models/rope_frequencies.h"

#include <cmath>
#include <numbers>

namespace trainyard::models {
namespace {

/// Slow rotations (a wavelength past the original context) are stretched, fast ones kept, and those between blended.
float scaled(float frequency, const RopeScaling& scaling) {
  const double wavelength = 2 * std::numbers::pi / static_cast<double>(frequency);
  if (wavelength < scaling.original_length / scaling.high_freq_factor) return frequency;
  const auto stretched = static_cast<float>(static_cast<double>(frequency) / scaling.factor);
  if (wavelength > scaling.original_length / scaling.low_freq_factor) return stretched;
  const auto smooth = static_cast<float>((scaling.original_length / wavelength - scaling.low_freq_factor) /
                                         (scaling.high_freq_factor - scaling.low_freq_factor));
  return (1 - smooth) * stretched + smooth * frequency;
}

}  // namespace

std::vector<float> rope_frequencies(const ModelConfig& config) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < config.head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(config.head_dim);
    const float frequency = 1.0F / std::pow(static_cast<float>(config.rope_theta), exponent);
    frequencies.push_back(config.rope_scaling.factor == 1 ? frequency : scaled(frequency, config.rope_scaling));
  }
  return frequencies;
}

}  // namespace trainyard::models
